import tempfile
import unittest
from pathlib import Path

from tollwick.db import connect
from tollwick.migrate import runner


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "0001_a.sql").write_text("CREATE TABLE a (x INTEGER);")
        (self.folder / "0001_a.down.sql").write_text("DROP TABLE a;")
        self.connection = connect(":memory:")

    def test_up_and_down(self):
        self.assertEqual(runner.up(self.connection, self.folder), ["0001_a"])
        self.assertEqual(runner.up(self.connection, self.folder), [])
        self.assertEqual(runner.down(self.connection, self.folder), "0001_a")

    def test_changed_file_is_refused(self):
        runner.up(self.connection, self.folder)
        (self.folder / "0001_a.sql").write_text("CREATE TABLE a (x INTEGER, y INTEGER);")
        with self.assertRaises(runner.MigrationError):
            runner.up(self.connection, self.folder)

    def test_no_way_back(self):
        (self.folder / "0002_b.sql").write_text("CREATE TABLE b (x INTEGER);")
        runner.up(self.connection, self.folder)
        with self.assertRaises(runner.MigrationError):
            runner.down(self.connection, self.folder)
