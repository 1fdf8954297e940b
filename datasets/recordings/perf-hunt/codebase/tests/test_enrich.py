import unittest

from sluicework.enrich import price
from sluicework.files import Files
from sluicework.registry import Registry
from sluicework.tariffs import Tariffs


class EnrichTest(unittest.TestCase):
    def test_half_a_tenth_is_rounded_up(self):
        self.assertEqual([price(n, 1500) for n in (1, 3, 7)], [2, 5, 11])

    def test_the_override_wins(self):
        self.assertEqual(Tariffs(Files()).tariff_for("weir", "2026-02-01T00:00"), 2310)

    def test_an_exchanged_meter(self):
        registry = Registry(Files())
        before, after = (registry.find("M0107", at) for at in ("2026-02-27T09:00", "2026-02-27T15:00"))
        self.assertEqual((before.factor, after.factor), (10, 1))
