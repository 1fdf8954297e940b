import unittest
from datetime import date, datetime

from toadline.closure import closed_nights, covered, median_night
from toadline.weather import by_night, parse

DAY = date(2025, 3, 8)


class WeatherTest(unittest.TestCase):
    def test_parse(self):
        row = {"ts": "2025-03-08T21:00", "temp": "", "rain": "0.4", "rh": "90"}
        self.assertEqual(parse(row), (datetime(2025, 3, 8, 21), None, 0.4))

    def test_by_night(self):
        readings = [(datetime(2025, 3, 8, 21), 6.1, 0.4), (datetime(2025, 3, 9, 3), 4.0, 1.0)]
        self.assertEqual(by_night(readings), {DAY: (6.1, 1.4)})


class ClosureTest(unittest.TestCase):
    def test_rule(self):
        self.assertEqual(closed_nights({DAY: (5.0, 0.2)}, 5.0, 0.2), [DAY])
        self.assertEqual(closed_nights({DAY: (4.9, 0.2)}, 5.0, 0.2), [])
        self.assertEqual(closed_nights({DAY: (None, 3.0)}, 5.0, 0.2), [])

    def test_share_and_median(self):
        arrivals = {DAY: 3, date(2025, 3, 9): 1}
        self.assertEqual(covered(arrivals, [DAY]), 0.75)
        self.assertEqual(median_night(arrivals), DAY)
