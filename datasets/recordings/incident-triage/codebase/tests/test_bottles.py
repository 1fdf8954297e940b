import unittest

from tankline.labfeed.bottles import LabelError, normalise, normalize_label


class BottlesTest(unittest.TestCase):
    def test_padding_of_the_scanner_is_taken_off(self):
        self.assertEqual(normalise("00317204"), "317204")

    def test_spaces(self):
        self.assertEqual(normalise(" 00317204 "), "317204")

    def test_no_number(self):
        with self.assertRaises(LabelError):
            normalise("31-7204")

    def test_groups_for_people(self):
        self.assertEqual(normalize_label("317204"), "317 204")
