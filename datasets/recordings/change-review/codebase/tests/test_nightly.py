from seedhold.jobs import nightly
from tests.support import SETTINGS, TODAY, BankTest


class NightlyTest(BankTest):
    def test_empty_lots_are_marked(self):
        self.connection.execute("UPDATE lots SET mg = 0 WHERE id = 3")
        self.assertEqual(list(nightly.run(self.connection, SETTINGS, TODAY)), ["lot 3 exhausted"])
        self.assertEqual(list(nightly.run(self.connection, SETTINGS, TODAY)), [])
