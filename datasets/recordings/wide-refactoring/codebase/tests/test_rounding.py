import unittest
from decimal import Decimal

from gaugeyard.common import fmt_val, fmt_value, round_cert, round_half_even, round_half_up, round_u, round_up_sig, round_value


class HalvesTest(unittest.TestCase):
    def test_the_three_rules_and_the_old_name(self):
        table = [
            # value, half up, half even, value, cert
            ("0.125", "0.13", "0.12", "0.13", "0.12"),
            ("-0.125", "-0.13", "-0.12", "-0.12", "-0.12"),
            ("0.135", "0.14", "0.14", "0.14", "0.14"),
            ("-0.135", "-0.14", "-0.14", "-0.13", "-0.14"),
            ("0.1349", "0.13", "0.13", "0.13", "0.13"),
        ]
        for text, *wanted in table:
            found = [str(rule(text, 2)) for rule in (round_half_up, round_half_even, round_value, round_cert)]
            self.assertEqual(found, wanted, text)


class UncertaintyTest(unittest.TestCase):
    def test_five_per_cent(self):
        self.assertEqual(str(round_u("0.01234")), "0.012")
        self.assertEqual(str(round_up_sig("0.01234")), "0.013")

    def test_above(self):
        self.assertEqual(str(round_u("0.01261")), "0.013")

    def test_zero(self):
        self.assertEqual(round_u("0"), Decimal(0))
        self.assertEqual(round_up_sig("0"), Decimal(0))


class TextTest(unittest.TestCase):
    def test_certificate_and_label(self):
        self.assertEqual(fmt_value("2.50", "bar"), "2.50 bar")
        self.assertEqual(fmt_val("2.50", "bar"), "2,5 bar")
