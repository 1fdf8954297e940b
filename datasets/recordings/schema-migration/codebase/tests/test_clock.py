import unittest

from tollwick import clock


class ClockTest(unittest.TestCase):
    def test_winter_and_summer(self):
        self.assertEqual(clock.from_local("2026-02-27 12:00:00"), clock.parse("2026-02-27 11:00:00"))
        self.assertEqual(clock.from_local("2025-10-20 12:00:00"), clock.parse("2025-10-20 10:00:00"))

    def test_local_day(self):
        self.assertEqual(clock.local_day(clock.parse("2026-02-26 23:30:00")), "2026-02-27")
