import unittest
from datetime import date
from decimal import Decimal

from gaugeyard import drift, history
from gaugeyard.common import CalibrationError
from tests.support import instrument


class DriftTest(unittest.TestCase):
    def test_slope(self):
        entries = [(date(2024, 1, 1), Decimal("0.1")), (date(2025, 1, 1), Decimal("-0.1"))]
        self.assertEqual(str(drift.per_year(entries)), "-0.1995")

    def test_one_entry(self):
        self.assertIsNone(drift.per_year([(date(2024, 1, 1), Decimal(1))]))

    def test_one_day(self):
        with self.assertRaises(CalibrationError):
            drift.per_year([(date(2024, 1, 1), Decimal(1))] * 2)

    def test_interval(self):
        self.assertEqual(drift.months(instrument(serial="NONE")), 12)
        self.assertIsNone(history.trend("NONE"))
