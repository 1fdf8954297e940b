import unittest

from tests.support import NOON, api, printed


class ApiTest(unittest.TestCase):
    def test_a_return_from_start_to_till(self):
        service = api()
        number = printed(service)
        answer = service.call("redeem", {"voucher": "K001-0227-0001", "till": "T1"}, NOON + 600)
        self.assertTrue(answer["ok"])
        self.assertAlmostEqual(answer["paid"], 0.93)
        self.assertEqual(service.store.get(number)["status"], "redeemed")

    def test_a_voucher_is_paid_once(self):
        service = api()
        printed(service)
        service.call("redeem", {"voucher": "K001-0227-0001", "till": "T1"}, NOON + 600)
        again = service.call("redeem", {"voucher": "K001-0227-0001", "till": "T2"}, NOON + 700)
        self.assertEqual(again["code"], "TW-405")

    def test_void_only_while_open(self):
        service = api()
        answer = service.call("void", {"return_id": printed(service)}, NOON + 60)
        self.assertEqual(answer["code"], "TW-409")

    def test_unknown_return(self):
        self.assertEqual(api().call("void", {"return_id": 99}, NOON)["code"], "TW-404")

    def test_bad_items(self):
        service = api()
        started = service.call("start", {"kiosk": "K001", "started": "2026-02-27 11:00:00"}, NOON)
        arguments = {"return_id": started["return_id"], "items": "PET05", "voucher": "V"}
        self.assertEqual(service.call("finish", arguments, NOON)["code"], "TW-422")
