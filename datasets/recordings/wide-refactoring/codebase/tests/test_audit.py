import tempfile
import unittest
from pathlib import Path

from gaugeyard import audit, common
from tests.support import ROOT

LOG = ROOT / "logs" / "nightly-2026-02.log"


class AuditTest(unittest.TestCase):
    def test_february(self):
        self.assertEqual(audit.counts(LOG), {"data": 41, "operation": 16})
        self.assertEqual(audit.fallbacks(LOG), {"multimeter": 5, "humidity": 8})

    def test_what_is_written_today_is_counted(self):
        with self.assertLogs("gaugeyard", "WARNING") as caught:
            common.warn("x.csv:%s: odd", 7)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "night.log"
            record = caught.records[0]
            path.write_text(f"2026-03-02 WARNING {record.name}: {record.getMessage()}\n")
            self.assertEqual(audit.counts(path), {"data": 1})
