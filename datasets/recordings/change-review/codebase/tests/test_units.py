import unittest

from seedhold.errors import NoSeedWeight
from seedhold.units import grams, mass_of, seeds_in


class UnitsTest(unittest.TestCase):
    def test_seeds_are_whole(self):
        self.assertEqual(seeds_in(12_500, 3_200), 3906)
        self.assertEqual(seeds_in(149, 150_000), 0)

    def test_mass_is_enough(self):
        for seeds, tsw in ((1, 33), (350, 150), (999, 3_207)):
            self.assertGreaterEqual(seeds_in(mass_of(seeds, tsw), tsw), seeds)

    def test_no_weight(self):
        with self.assertRaises(NoSeedWeight):
            seeds_in(1000, None)

    def test_grams(self):
        self.assertEqual(grams(12_050), "12.050 g")
