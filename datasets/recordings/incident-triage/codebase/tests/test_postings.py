import unittest

from tankline.ledger.postings import deduction, pay
from tests.support import pickup


class PostingsTest(unittest.TestCase):
    def test_pay(self):
        self.assertEqual(pay(pickup(litres=1000)), 43100)

    def test_deduction(self):
        self.assertEqual(deduction(pickup(litres=1000)), 61600)
