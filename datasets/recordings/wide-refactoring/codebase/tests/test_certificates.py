import unittest

from tests.support import GOLDEN, run

CASES = {
    "pressure": "PG-1042",
    "temperature": "TH-3007",
    "mass": "BA-4007",
    "torque": "TW-2007",
    "caliper": "CA-5007",
    "humidity": "HY-6007",
}


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_certificates(self):
        for kind, serial in CASES.items():
            with self.subTest(kind):
                code, out, _ = run(
                    "--day", "2026-03-02", "cert", serial, f"data/readings/{kind}-01.csv", "--number", "42"
                )
                self.assertEqual(out, (GOLDEN / f"cert-{kind}.txt").read_text())
                self.assertEqual(code, 6 if "FAIL" in out else 0)
