import unittest

from toadline import tables


class CorrectionsTest(unittest.TestCase):
    def test_value_is_replaced(self):
        rows = {row["record_id"]: row for row in tables.read(2025, "buckets.csv", key="record_id")}
        self.assertEqual(rows["F25-0007"]["bucket"], "B05")

    def test_data_is_as_it_came(self):
        rows = {row["record_id"]: row for row in tables.read(2025, "buckets.csv")}
        self.assertNotEqual(rows["F25-0007"]["bucket"], "B05")
