import unittest
from datetime import date
from unittest import mock

from gaugeyard import common
from gaugeyard.common import days_left, due_date, due_day, next_due, parse_date, parse_day


class DueTest(unittest.TestCase):
    def test_the_three_rules(self):
        last = date(2025, 8, 31)
        self.assertEqual(due_date(last, 6), date(2026, 2, 28))
        self.assertEqual(next_due(date(2025, 8, 2), 6), date(2026, 2, 28))
        self.assertEqual(due_date(date(2025, 8, 2), 6), date(2026, 2, 2))
        self.assertEqual(due_day(last, 6), date(2026, 2, 27))

    def test_december(self):
        self.assertEqual(next_due(date(2025, 6, 1), 6), date(2025, 12, 31))


class ParseTest(unittest.TestCase):
    def test_both(self):
        self.assertEqual(parse_day("2026-03-02"), date(2026, 3, 2))
        self.assertEqual(parse_date("02.03.2026"), date(2026, 3, 2))
        self.assertIsNone(parse_date("March"))
        with self.assertRaises(ValueError):
            parse_day("02.03.2026")


class TodayTest(unittest.TestCase):
    def test_override(self):
        with mock.patch.object(common, "TODAY", date(2026, 3, 2)):
            self.assertEqual(days_left(date(2026, 3, 5)), 3)
