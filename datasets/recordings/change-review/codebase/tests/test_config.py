import unittest

from seedhold.config import load


class ConfigTest(unittest.TestCase):
    def test_sites(self):
        self.assertEqual(load("vault").floor("base"), 1500)
        self.assertEqual(load("field").floor("base"), 1200)
        self.assertTrue(load("field").quarantine_blocks)
