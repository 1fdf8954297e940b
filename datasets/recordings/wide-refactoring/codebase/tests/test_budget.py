import unittest
from decimal import Decimal

from gaugeyard import budget
from gaugeyard.common import CalibrationError, expand, expand_t, root_sum, stdev, stdev_mean


class BudgetTest(unittest.TestCase):
    def test_combine(self):
        self.assertEqual(f"{budget.combine(Decimal('0.001'), '0.001', 'DWT-1'):.6f}", "0.002344")

    def test_unknown_standard(self):
        with self.assertRaises(CalibrationError) as caught:
            budget.combine(1, 1, "NO-1")
        self.assertEqual(caught.exception.code, "C31")
        self.assertEqual(budget.table(1, 1, "NO-1"), [])

    def test_scatter(self):
        values = ["1.0", "1.2", "1.1", "1.3"]
        self.assertEqual(f"{stdev(values):.5f}", "0.12910")
        self.assertEqual(f"{stdev_mean(values):.5f}", "0.06455")

    def test_expansion(self):
        self.assertEqual(expand("0.5"), Decimal("1.0"))
        self.assertEqual(expand_t("0.5", 2), Decimal("2.265"))
        self.assertEqual(root_sum([3, 4]), 5)
