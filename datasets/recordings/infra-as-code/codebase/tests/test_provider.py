from tests.base import Case
from trellis.provider import ProviderError


class ProviderTest(Case):
    def setUp(self):
        super().setUp()
        self.cloud = self.provider()
        self.vpc = self.cloud.create("net_vpc", {"name": "v", "cidr": "10.0.0.0/16"})

    def refused(self, code, function, *arguments):
        with self.assertRaisesRegex(ProviderError, code):
            function(*arguments)

    def test_quota(self):
        self.cloud.quota = {"net_eip": 1}
        subnet = self.subnet("10.0.1.0/24")
        self.cloud.create("net_eip", {"name": "a", "subnet": subnet})
        self.refused("E-4290", self.cloud.create, "net_eip", {"name": "b", "subnet": subnet})

    def test_ranges(self):
        self.subnet("10.0.1.0/24")
        self.refused("E-4004", self.subnet, "10.0.1.128/25")
        self.refused("E-4003", self.subnet, "10.1.1.0/24")

    def test_in_use(self):
        self.subnet("10.0.1.0/24")
        self.refused("E-4091", self.cloud.delete, self.vpc)

    def test_lists_are_sorted(self):
        rule = self.cloud.create("fw_rule", {"name": "r", "vpc": self.vpc, "port": 1, "sources": ["b", "a"]})
        self.assertEqual(self.cloud.get(rule)["sources"], ["a", "b"])

    def subnet(self, cidr):
        return self.cloud.create("net_subnet", {"vpc": self.vpc, "cidr": cidr, "zone": "x-a"})
