import unittest
from datetime import date
from pathlib import Path
from unittest import mock

from gaugeyard import common, exporter, labels, orders, reminders
from tests.support import GOLDEN, instrument, run


class DueListTest(unittest.TestCase):
    def test_golden(self):
        self.assertEqual(exporter.due_list(date(2026, 4, 30)), (GOLDEN / "due-2026-04.csv").read_text())


class RemindersTest(unittest.TestCase):
    def test_golden(self):
        _, out, _ = run("--day", "2026-03-02", "reminders")
        self.assertEqual(out, (GOLDEN / "reminders-2026-03-02.txt").read_text())

    def test_day_set_from_outside(self):
        with mock.patch.object(common, "TODAY", date(2026, 8, 1)):
            self.assertEqual(reminders.step(instrument()), 30)


class LabelTest(unittest.TestCase):
    def test_end_of_month(self):
        text = labels.label(instrument(serial="PG 1042"), date(2025, 8, 2))
        self.assertEqual(text, "HQ PG 1042\nnext 08/2026\nlimit 0,25")


class OrdersTest(unittest.TestCase):
    def test_total(self):
        with self.assertLogs("gaugeyard.common", "WARNING") as caught:
            net, tax, whole = orders.total(Path("data/orders-2026-03.csv"))
        self.assertEqual((str(net), str(tax), str(whole)), ("9674.50", "1838.16", "11512.66"))
        self.assertEqual(len(caught.output), 11)
