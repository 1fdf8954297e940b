import unittest

from sluicework.export import HEADS, Exporter
from sluicework.files import Files


class ExportTest(unittest.TestCase):
    def written(self, batch_rows):
        files = Files()
        exporter = Exporter(files, "out/test", batch_rows)
        exporter.rows("hours.csv", "weir", [("2026-02-27T01", n, 5, 10) for n in range(5)])
        exporter.close()
        return [files.read(f"out/test/{name}") for name in HEADS]

    def test_batches_do_not_change_the_report(self):
        self.assertEqual(self.written(1), self.written(3))
        self.assertEqual(self.written(1)[0].splitlines()[:2], [HEADS["hours.csv"], "weir,2026-02-27T01,0,5,10"])
