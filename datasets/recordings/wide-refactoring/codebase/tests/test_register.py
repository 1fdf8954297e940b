import tempfile
import unittest
from pathlib import Path

from gaugeyard import history, registry, standards
from gaugeyard.common import CalError, DataError, LookupFailed, find_instrument, get_instrument


class RegisterTest(unittest.TestCase):
    def test_lookup(self):
        self.assertEqual(find_instrument("pg-1042").serial, "PG1042")
        self.assertIsNone(find_instrument("QQ-1"))
        with self.assertRaises(KeyError):
            get_instrument("QQ-1")
        with self.assertRaises(LookupFailed):
            get_instrument("QQ-1")

    def test_broken_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.csv"
            path.write_text("serial,kind,customer,months,limit,last,places\nA,mass,B,12,1,soon,2\n")
            with self.assertRaisesRegex(DataError, "r.csv:2: no day: soon"):
                registry.load(path)

    def test_customer_without_instruments(self):
        with self.assertRaises(CalError):
            registry.of_customer("Nobody")

    def test_standard(self):
        self.assertIsNone(standards.find("NO-1"))
        with self.assertRaises(CalError):
            standards.usable("NO-1")

    def test_history_takes_both_formats(self):
        days = [day for day, _ in history.of("PG-1042")]
        self.assertEqual(days, sorted(days))
