import io
import unittest
from contextlib import redirect_stderr
from datetime import date
from pathlib import Path
from unittest import mock

from gaugeyard import common, customers, loans, mailing, planning, registry
from gaugeyard.common import LookupFailed, NotDue
from tests.support import instrument

ORDERS = Path("data/orders-2026-03.csv")


class PlanningTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(common, "TODAY", date(2026, 3, 2))
        patch.start()
        self.addCleanup(patch.stop)

    def test_urgency(self):
        self.assertEqual(planning.urgency(instrument(months=6)), "overdue")
        with self.assertRaises(NotDue):
            planning.urgency(instrument())

    def test_benches(self):
        with self.assertLogs("gaugeyard.common", "WARNING"):
            plan = planning.benches(ORDERS)
        self.assertNotIn("multimeter", plan)
        self.assertTrue(all(len(day) <= planning.PER_DAY[kind] for kind, each in plan.items() for day in each))

    def test_capacity(self):
        with self.assertLogs("gaugeyard.common", "WARNING"), redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            planning.check_capacity(ORDERS, 1)

    def test_load(self):
        self.assertEqual(sum(planning.month_load(registry.load().values()).values()), len(registry.load()))

    def test_letters(self):
        with self.assertLogs("gaugeyard.common", "WARNING") as caught:
            found = mailing.outgoing()
        self.assertEqual(len(found), 4)
        self.assertIn("Tarn Brewing has no address", caught.output[0])
        self.assertIn("2026-03-02, to Sallow Pharma", found["gmp@sallow.example"])


class CustomersTest(unittest.TestCase):
    def test_lookup(self):
        self.assertIsNone(customers.get("nordkai shipyard").since)
        with self.assertRaises(LookupFailed):
            customers.get("Nobody")
        self.assertEqual(customers.mail_of("Nobody"), "")


class LoansTest(unittest.TestCase):
    def test_lending(self):
        self.assertEqual(loans.out(), ["PG1056", "TW2049"])
        self.assertEqual(loans.can_lend("PG-1056"), (False, "PG-1056 is with a customer"))
        self.assertEqual(loans.can_lend("QQ-1"), (False, "QQ-1 is not in the register"))

    def test_at_the_limit(self):
        self.assertTrue(loans.take_back("PG-1056", "0.25"))
        self.assertFalse(loans.take_back("TW-2049", "4.0"))
        with self.assertRaises(NotDue):
            loans.take_back("PG-1042", "0")

    def test_days(self):
        self.assertEqual(loans.days("PG-1056"), 18)
        self.assertIsNone(loans.days("TH-3042"))
