import unittest

from tests.support import outside


class PortalTest(unittest.TestCase):
    def test_answers(self):
        code, out = outside("contrib/portal/fetch_due.py", "PG-1042", "QQ")
        self.assertEqual((code, out), (0, "PG1042: 2026-11-29\nQQ: unknown\n250.0 refused C11\nTrue\n"))


class FinanceTest(unittest.TestCase):
    def test_customer(self):
        code, out = outside("contrib/finance/monthly.py", "2026-03-02", "Nobody")
        self.assertEqual((code, out), (0, "none: no instruments of Nobody\n"))

    def test_day(self):
        code, out = outside("contrib/finance/monthly.py", "2026-03-02", "Nordkai Shipyard")
        self.assertEqual(code, 0)
        self.assertIn("\nreminders 2026-03-02\n", out)
