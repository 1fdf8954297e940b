import tempfile
import unittest
from pathlib import Path

from siltpump import config as settings


class LoadTest(unittest.TestCase):
    def load(self, text: str) -> settings.Config:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pump.ini"
            path.write_text(text)
            return settings.load(path)

    def test_defaults(self):
        found = self.load("[pump]\n")
        self.assertEqual((found.flush_bytes, found.interval_s, found.settle_s), (6144, 30, 5))

    def test_section_is_required(self):
        with self.assertRaisesRegex(settings.ConfigError, r"no \[pump\] section"):
            self.load("[other]\n")

    def test_bad_numbers_are_named(self):
        with self.assertRaisesRegex(settings.ConfigError, r"\[pump\] interval_s: '2m'"):
            self.load("[pump]\ninterval_s = 2m\n")
        with self.assertRaisesRegex(settings.ConfigError, "flush_bytes: 100 is below 512"):
            self.load("[pump]\nflush_bytes = 100\n")
