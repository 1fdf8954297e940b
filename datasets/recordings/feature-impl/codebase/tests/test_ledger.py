import json
import tempfile
import unittest
from pathlib import Path

from siltpump.ledger import Ledger, LedgerError, ranges
from siltpump.spool import Record


def record(line: int) -> Record:
    return Record("seg-0002", line, 0, "app", "{}")


class LedgerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "ledger.jsonl"

    def test_folds_lines(self):
        self.assertEqual(ranges([3, 1, 2, 7]), [(1, 3), (7, 7)])

    def test_entry_and_reload(self):
        Ledger(self.path).append([record(14), record(15), record(22)])
        entry = json.loads(self.path.read_text())
        self.assertEqual(entry, {"v": 3, "flush": 1, "took": {"seg-0002": "14-15,22"}})
        again = Ledger(self.path)
        self.assertTrue(again.shipped("seg-0002", 22))
        self.assertFalse(again.shipped("seg-0002", 16))

    def test_too_many_ranges(self):
        with self.assertRaisesRegex(LedgerError, "LG-41 seg-0002: 17 ranges"):
            Ledger(self.path).append([record(line) for line in range(1, 34, 2)])

    def test_other_format(self):
        self.path.write_text('{"v": 2, "flush": 1, "took": {}}\n')
        with self.assertRaisesRegex(LedgerError, "LG-12"):
            Ledger(self.path)
