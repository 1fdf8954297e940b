from tests.base import Case
from trellis import TrellisError, executor


class ExecutorTest(Case):
    def test_apply_then_nothing(self):
        lines = self.apply()
        self.assertEqual(len(lines), 7)
        self.assertEqual(self.state().serial, 1)
        self.assertEqual([each for each in self.actions() if each[0] != "update"], [])

    def test_out_of_date_plan(self):
        plan = self.plan()
        self.apply()
        with self.assertRaisesRegex(TrellisError, "serial 0, the state is at 1"):
            executor.apply(self.settings, plan)

    def test_changed_configuration(self):
        plan = self.plan()
        self.edit("modules/tiny.toml", "default = 300", "default = 60")
        with self.assertRaisesRegex(TrellisError, "changed after the plan"):
            executor.apply(self.settings, plan)

    def test_policy_refuses(self):
        self.edit("modules/tiny.toml", "public = false", "public = true")
        with self.assertRaisesRegex(TrellisError, "POL-018 t.db_instance.main"):
            self.apply()

    def test_delete(self):
        self.apply()
        text = (self.root / "modules/tiny.toml").read_text()
        (self.root / "modules/tiny.toml").write_text(text[: text.index("[resource.dns_record")])
        self.assertEqual([line.split()[:2] for line in self.apply() if line.strip().startswith("-")], [["-", "t.dns_record.www"]])

    def test_lock(self):
        (self.root / "state/one.lock").write_text('{"id": "lk-1", "who": "w", "since": "s", "why": "y"}')
        with self.assertRaisesRegex(TrellisError, "E-LOCK one: locked by w"):
            self.apply()
