import unittest

from sluicework.dedupe import dedupe
from sluicework.model import Reading


def reading(meter, at, received, litres):
    return Reading("weir", meter, f"2026-02-27T{at}", f"2026-02-27T{received}", litres)


class DedupeTest(unittest.TestCase):
    def test_the_last_to_arrive_stays_in_the_place_of_the_first(self):
        rows = [reading("M1", "01:00", "01:02", 5), reading("M2", "01:00", "01:03", 6), reading("M1", "01:00", "04:00", 7)]
        self.assertEqual([(r.meter, r.litres) for r in dedupe(rows)], [("M1", 7), ("M2", 6)])

    def test_other_times_are_other_readings(self):
        rows = [reading("M1", "01:00", "01:02", 5), reading("M1", "01:15", "01:17", 5)]
        self.assertEqual(len(dedupe(rows)), 2)
