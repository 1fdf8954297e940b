import unittest
from datetime import date, datetime

from toadline.night import night_of, night_of_check, night_of_walk, nights


class NightTest(unittest.TestCase):
    def test_before_noon_is_the_night_before(self):
        self.assertEqual(night_of(datetime(2025, 3, 8, 0, 30)), date(2025, 3, 7))
        self.assertEqual(night_of(datetime(2025, 3, 8, 12, 0)), date(2025, 3, 8))

    def test_check_of_the_evening(self):
        self.assertEqual(night_of_check(date(2025, 3, 8), "E"), date(2025, 3, 8))

    def test_unknown_shift(self):
        with self.assertRaises(ValueError):
            night_of_check(date(2025, 3, 8), "N")

    def test_walk(self):
        self.assertEqual(night_of_walk(date(2025, 3, 1)), date(2025, 2, 28))

    def test_nights(self):
        self.assertEqual(len(nights("2025-02-24", "2025-04-13")), 49)
