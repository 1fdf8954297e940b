import tomllib
import unittest

import gaugeyard
from gaugeyard import api, common
from tests.support import ROOT


class PublicApiTest(unittest.TestCase):
    def test_everything_is_there(self):
        for name in api.__all__:
            self.assertTrue(hasattr(api, name), name)

    def test_bases_of_errors(self):
        self.assertTrue(issubclass(common.CalibrationError, ValueError))
        self.assertFalse(issubclass(common.CalibrationError, common.CalError))
        self.assertTrue(issubclass(common.LookupFailed, KeyError))
        self.assertTrue(issubclass(common.DataError, common.CalError))

    def test_one_version(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        self.assertEqual(project["version"], gaugeyard.__version__)
        self.assertIn(f"## {gaugeyard.__version__}\n", (ROOT / "CHANGELOG.md").read_text())
