import unittest

from torikomi.importer import parse_quantity


class QuantityTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(parse_quantity("120"), 120)

    def test_thousands_separator(self):
        self.assertEqual(parse_quantity("1,200"), 1200)


if __name__ == "__main__":
    unittest.main()
