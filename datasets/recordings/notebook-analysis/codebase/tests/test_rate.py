import unittest
from datetime import date

from toadline.bootstrap import quantile, rate_interval
from toadline.casualties import by_night, estimated
from toadline.rate import passage_rate


class RateTest(unittest.TestCase):
    def test_rate(self):
        self.assertEqual(passage_rate(75, 25), 0.75)

    def test_nothing(self):
        with self.assertRaises(ValueError):
            passage_rate(0, 0)

    def test_casualties(self):
        rows = [{"walk_date": "2025-03-09", "section": "B", "km": "2.7", "species": s, "count": "2", "walker": "@halm"}
                for s in ("BB", "TV")]
        self.assertEqual(by_night(rows, "B"), {date(2025, 3, 8): 2})
        self.assertEqual(estimated(30, 0.6), 50)

    def test_detection(self):
        with self.assertRaises(ValueError):
            estimated(3, 0)


class BootstrapTest(unittest.TestCase):
    def test_quantile(self):
        self.assertEqual(quantile([0, 1, 2, 3], 0.5), 1.5)

    def test_same_seed_same_interval(self):
        some = rate_interval([3, 4, 5], [1, 2, 1], 50, 0.9, 1)
        self.assertEqual(some, rate_interval([3, 4, 5], [1, 2, 1], 50, 0.9, 1))
        self.assertLess(some[0], some[1])
