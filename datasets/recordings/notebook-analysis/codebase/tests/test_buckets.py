import unittest
from datetime import date

from toadline.buckets import clean, dedupe, parse_count, position_number

ROW = {"record_id": "F25-1", "date": "2025-03-20", "shift": "E", "bucket": "B07", "species": "BB", "count": "3",
       "observer": "@brix", "source": "app", "note": ""}


class BucketsTest(unittest.TestCase):
    def test_counts(self):
        self.assertEqual([parse_count(text) for text in ("4", "~15", "")], [4, 15, None])

    def test_typed_twice(self):
        self.assertEqual(len(dedupe([ROW, {**ROW, "record_id": "F25-2"}])), 1)

    def test_other_count_is_another_row(self):
        self.assertEqual(len(dedupe([ROW, {**ROW, "count": "4"}])), 2)

    def test_numbers_before_the_fence_was_made_longer(self):
        self.assertEqual(position_number("B01", date(2025, 3, 1)), 5)
        self.assertEqual(position_number("B01", date(2025, 3, 30)), 1)

    def test_clean(self):
        self.assertEqual(clean([ROW]), [(date(2025, 3, 20), 7, "BB", 3)])
