import tempfile
import unittest
from datetime import datetime, timezone
from pathlib import Path

from logkeep.naming import rotated_path

WHEN = datetime(2026, 3, 2, 9, 0, tzinfo=timezone.utc)


class NamingTest(unittest.TestCase):
    def test_stamp_is_beijing_time(self):
        self.assertEqual(rotated_path(Path("x/pay.log"), WHEN).name, "pay.20260302T1700.log")

    def test_same_minute_gets_serial(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pay.20260302T1700.log").touch()
            target = rotated_path(Path(folder) / "pay.log", WHEN)
            self.assertEqual(target.name, "pay.20260302T1700-2.log")


if __name__ == "__main__":
    unittest.main()
