import unittest
from datetime import date
from unittest import mock

from gaugeyard import common
from gaugeyard.common import cert_number, clean_serial, norm_serial, norm_serial_key


class SerialTest(unittest.TestCase):
    def test_three_of_them(self):
        text = " 00417-nk "
        self.assertEqual(norm_serial(text), "00417NK")
        self.assertEqual(norm_serial_key(text), "417NK")
        self.assertEqual(clean_serial(text), "00417-nk")

    def test_number(self):
        with mock.patch.object(common, "SITE", "NK"):
            self.assertEqual(cert_number("pressure", 7, date(2026, 1, 1)), "NK-P-2026-00007")
