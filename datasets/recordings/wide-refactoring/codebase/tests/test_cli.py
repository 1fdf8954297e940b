import unittest

from gaugeyard import common
from tests.support import run


class ExitCodeTest(unittest.TestCase):
    def tearDown(self):
        common.TODAY = None
        common.set_site("HQ")

    def test_codes(self):
        table = [
            (3, "cert", "QQ-1", "data/readings/pressure-01.csv"),
            (4, "cert", "PG-1042", "data/readings/pressure-short.csv"),
            (4, "cert", "TW-2007", "data/readings/torque-short.csv"),
            (5, "cert", "PG-1042", "data/readings/pressure-broken.csv"),
            (4, "cert", "MM-7001", "data/readings/pressure-01.csv"),
            (1, "--site", "site-none", "reminders"),
        ]
        for code, *arguments in table:
            with self.subTest(arguments):
                found, out, err = run(*arguments)
                self.assertEqual((found, out), (code, ""))
                self.assertTrue(err.startswith("gaugeyard: "))

    def test_the_code_of_the_readings_is_told(self):
        _, _, err = run("cert", "PG-1042", "data/readings/pressure-short.csv")
        self.assertEqual(err, "gaugeyard: C21 PG1042: 2 values, at least 3 are needed\n")
