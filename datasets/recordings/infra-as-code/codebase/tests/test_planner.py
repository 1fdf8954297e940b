from tests.base import Case
from trellis import TrellisError


class PlannerTest(Case):
    def test_first_plan_creates_in_order(self):
        found = self.actions()
        self.assertEqual({action for action, _ in found}, {"create"})
        order = [address for _, address in found]
        self.assertLess(order.index("t.net_vpc.main"), order.index("t.net_subnet.app[a]"))
        self.assertLess(order.index("t.db_instance.main"), order.index("t.dns_record.www"))

    def test_update_in_place(self):
        self.apply()
        self.edit("modules/tiny.toml", "default = 300", "default = 60")
        plan = self.plan()
        self.assertEqual([(each.action, each.changes) for each in plan.actions], [("update", {"ttl": [300, 60]})])

    def test_replacement_follows_the_reference(self):
        self.apply()
        self.edit("envs/one/env.toml", "10.0.2.0/24", "10.0.3.0/24")
        found = self.actions()
        self.assertIn(("replace", "t.net_subnet.app[b]"), found)
        self.assertIn(("replace_create_first", "t.net_eip.nat[b]"), found)

    def test_keep_is_kept(self):
        self.apply()
        self.edit("modules/tiny.toml", '"${env.name}-main"', '"${env.name}-other"')
        with self.assertRaisesRegex(TrellisError, "must be kept"):
            self.plan()

    def test_target(self):
        plan = self.plan(target="t.net_eip")
        self.assertEqual([each.address for each in plan.actions], ["t.net_eip.nat[a]", "t.net_eip.nat[b]"])

    def test_hash_is_that_of_the_text(self):
        self.assertEqual(self.plan().hash(), self.plan().hash())
