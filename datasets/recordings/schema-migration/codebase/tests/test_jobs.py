import unittest

from tests.support import NOON, api, printed
from tollwick.jobs import expire, loyalty, settlement

DAY = 86400


class JobsTest(unittest.TestCase):
    def test_expire_after_voucher_days(self):
        service = api()
        number = printed(service)
        self.assertEqual(expire.run(service.connection, service.settings, NOON + 89 * DAY), 0)
        self.assertEqual(expire.run(service.connection, service.settings, NOON + 91 * DAY), 1)
        self.assertEqual(service.store.get(number)["status"], "void")

    def test_settlement_of_a_day(self):
        service = api()
        printed(service)
        printed(service, "K001-0227-0002", "GLS05:10")
        self.assertEqual(settlement.run(service.connection, service.settings, "2026-02-27"), [("K001", 2, 1.83)])

    def test_merge_members(self):
        service = api()
        number = printed(service)
        service.store.set_member(number, "0071")
        self.assertEqual(loyalty.run(service.connection, service.settings, [("0071", "0018")]), 1)
        self.assertEqual(service.store.get(number)["member"], "0018")
