from tests.base import Case
from trellis import TrellisError, config, drift, importer, state


class StateTest(Case):
    def test_move(self):
        self.apply()
        mine = self.state()
        identifier = mine.resources["t.net_vpc.main"].id
        mine.move("t.net_vpc.main", "n.net_vpc.main")
        self.assertEqual(mine.resources["n.net_vpc.main"].id, identifier)
        with self.assertRaisesRegex(TrellisError, "different types"):
            mine.move("n.net_vpc.main", "n.net_subnet.main")

    def test_import(self):
        self.apply()
        mine = self.state()
        before = mine.resources.pop("t.net_eip.nat[a]")
        importer.take(config.load(self.settings, "one"), mine, self.provider(), "t.net_eip.nat[a]", before.id)
        self.assertEqual(mine.resources["t.net_eip.nat[a]"].id, before.id)

    def test_drift_and_refresh(self):
        self.apply()
        mine, cloud = self.state(), self.provider()
        cloud.update(mine.resources["t.dns_record.www"].id, {"ttl": 30})
        self.assertEqual(len(drift.find(mine, cloud)), 1)
        self.assertEqual(drift.refresh(mine, cloud), 1)
        self.assertEqual(drift.find(mine, cloud), [])

    def test_unlock_needs_the_id(self):
        (self.root / "state/one.lock").write_text('{"id": "lk-1", "who": "w", "since": "s", "why": "y"}')
        with self.assertRaisesRegex(TrellisError, "the lock is lk-1, not lk-2"):
            state.unlock(self.settings, "one", "lk-2")
