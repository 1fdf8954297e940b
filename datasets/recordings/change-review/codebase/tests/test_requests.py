from seedhold import lots, requests
from seedhold.errors import NotEnough, WrongState
from tests.support import SETTINGS, TODAY, BankTest


class RequestsTest(BankTest):
    def wanted(self, seeds, accession="A-1"):
        number = requests.create(self.connection, accession, "R-1", seeds, TODAY)
        requests.approve(self.connection, number, SETTINGS, TODAY)
        return number

    def test_ship_takes_the_oldest_first(self):
        packets = requests.ship(self.connection, self.wanted(1000), SETTINGS, TODAY)
        self.assertEqual(packets, [(1, 20000)])

    def test_ship_may_reach_the_floor(self):
        number = requests.create(self.connection, "B-1", "R-1", 350, TODAY)
        requests.approve(self.connection, number, SETTINGS, TODAY)
        self.assertEqual(requests.ship(self.connection, number, SETTINGS, TODAY), [(3, 53)])

    def test_ship_does_not_go_below_the_floor(self):
        with self.assertRaises(NotEnough):
            requests.ship(self.connection, self.wanted(1001), SETTINGS, TODAY)

    def test_quarantine_is_not_touched(self):
        self.assertEqual([lot.id for lot in lots.eligible(self.connection, "B-1", SETTINGS)], [3])

    def test_states(self):
        number = self.wanted(10)
        with self.assertRaises(WrongState):
            requests.approve(self.connection, number, SETTINGS, TODAY)
        requests.refuse(self.connection, number)
        with self.assertRaises(WrongState):
            requests.ship(self.connection, number, SETTINGS, TODAY)
