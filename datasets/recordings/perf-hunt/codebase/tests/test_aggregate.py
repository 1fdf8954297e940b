import unittest

from sluicework.aggregate import in_order, per_hour
from sluicework.anomalies import anomalies
from sluicework.model import Reading


def reading(meter, at, litres):
    return Reading("weir", meter, f"2026-02-27T{at}", f"2026-02-27T{at}", litres, price=litres * 2)


class AggregateTest(unittest.TestCase):
    def test_order_and_hours(self):
        rows = in_order([reading("M2", "01:15", 1), reading("M1", "02:00", 2), reading("M1", "01:15", 4)])
        self.assertEqual([(r.meter, r.litres) for r in rows], [("M1", 4), ("M2", 1), ("M1", 2)])
        self.assertEqual(per_hour(rows), [("2026-02-27T01", 2, 5, 10), ("2026-02-27T02", 1, 2, 4)])

    def test_four_times_the_median(self):
        rows = [reading("M1", f"0{n}:00", 10) for n in range(4)] + [reading("M1", "05:00", 41)]
        self.assertEqual([found[2:] for found in anomalies(rows)], [(41, 10.0)])
