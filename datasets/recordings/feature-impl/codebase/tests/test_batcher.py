import unittest
from pathlib import Path

from siltpump.batcher import next_flush
from siltpump.config import Config
from siltpump.spool import Record


def config(flush_bytes: int = 100) -> Config:
    return Config(Path("spool"), Path("out"), Path("ledger"), flush_bytes, 30, 5)


def record(line: int, size: int = 40, lane: str = "app") -> Record:
    return Record("seg-0001", line, line * 1000, lane, "x" * (size - 1))


class NextFlushTest(unittest.TestCase):
    def test_fills_from_the_head(self):
        flush = next_flush([record(1), record(2), record(3)], config(), 9000)
        self.assertEqual([found.line for found in flush.records], [1, 2])
        self.assertEqual((flush.size, flush.left_behind, flush.cut_ms), (80, 1, 9000))

    def test_stops_at_the_first_record_that_does_not_fit(self):
        flush = next_flush([record(1), record(2, 90), record(3, 10)], config(), 9000)
        self.assertEqual([found.line for found in flush.records], [1])

    def test_oversized_record_goes_out_alone(self):
        flush = next_flush([record(1, 300), record(2)], config(), 9000)
        self.assertEqual([found.line for found in flush.records], [1])

    def test_nothing_pending(self):
        self.assertEqual(next_flush([], config(), 9000).records, ())
