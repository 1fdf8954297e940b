import unittest
from datetime import date

from gaugeyard import archive
from gaugeyard.common import CalError, Instrument, Reading
from tests.support import GOLDEN, instrument, reading


class ArchiveTest(unittest.TestCase):
    def test_golden(self):
        lines = [archive.dump(reading("2.5", "2.501", "2.502", "2.500")), archive.dump(instrument(last=date(2025, 8, 31)))]
        self.assertEqual("\n".join(lines) + "\n", (GOLDEN / "archive.jsonl").read_text())

    def test_load(self):
        found = archive.load_file(GOLDEN / "archive.jsonl")
        self.assertEqual([cls for cls, _ in found], [Reading, Instrument])

    def test_unknown_class(self):
        with self.assertRaises(CalError):
            archive.load('{"class": "gaugeyard.common.Nothing"}')
