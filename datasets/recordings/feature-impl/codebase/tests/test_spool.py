import tempfile
import unittest
from pathlib import Path

from siltpump import spool


class PendingTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        (self.folder / "seg-0010.jsonl").write_text('{"t": 9000, "lane": "audit"}\n')
        (self.folder / "seg-0009.jsonl").write_text('{"t": 1000}\n{"t": 2000, "lane": "chatter"}\n')

    def test_order_and_lane(self):
        found = spool.pending(self.folder, lambda *_: False, 20000, 5)
        self.assertEqual([(r.segment, r.line) for r in found][0], ("seg-0009", 1))
        self.assertEqual([r.lane for r in found], ["app", "chatter", "audit"])

    def test_young_records_rest(self):
        found = spool.pending(self.folder, lambda *_: False, 13999, 5)
        self.assertEqual(len(found), 2)

    def test_shipped_lines_are_left_out(self):
        found = spool.pending(self.folder, lambda segment, line: line == 1, 20000, 5)
        self.assertEqual([r.ts for r in found], [2000])
