from datetime import date

from seedhold import lots, viability
from seedhold.days import months_after
from tests.support import SETTINGS, TODAY, BankTest


class ViabilityTest(BankTest):
    def test_exactly_the_least_is_viable(self):
        self.assertTrue(lots.get(self.connection, 2).viable(85))

    def test_the_last_test_counts(self):
        viability.enter(self.connection, 1, date(2026, 1, 5), 200, 169)
        self.assertEqual([lot.id for lot in lots.eligible(self.connection, "A-1", SETTINGS)], [2])

    def test_due(self):
        self.assertEqual(viability.due(self.connection, SETTINGS, TODAY), [])
        self.assertEqual(viability.due(self.connection, SETTINGS, date(2028, 4, 1))[0], (1, date(2028, 4, 1)))

    def test_months(self):
        self.assertEqual(months_after(date(2024, 2, 29), 12), date(2025, 2, 28))
        self.assertEqual(months_after(date(2025, 8, 31), 6), date(2026, 2, 28))
