import unittest

from gaugeyard.common import check_reading, in_tolerance, within, within_guarded
from tests.support import reading


class ToleranceTest(unittest.TestCase):
    def test_at_the_limit(self):
        self.assertTrue(within("0.25", "0.25"))
        self.assertFalse(in_tolerance("0.25", "0.25"))
        self.assertFalse(within_guarded("0.25", "0.25", "0.01"))
        self.assertTrue(within_guarded("0.24", "0.25", "0.01"))

    def test_check(self):
        self.assertEqual(check_reading(reading("1", "1", "1", "1")), (True, ""))
        self.assertEqual(check_reading(reading("1", "1", "1")), (False, "2 values, at least 3 are needed"))
