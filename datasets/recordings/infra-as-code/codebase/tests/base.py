"""A small company in a temporary folder."""

import shutil
import tempfile
import unittest
from pathlib import Path

from trellis import config, executor, planner, settings, state
from trellis.provider import Provider

MODULE = """
[module]
name = "tiny"
version = "1.0.0"
[variables.cidr]
[variables.zones]
[variables.retention]
default = 14
[variables.ttl]
default = 300
[resource.net_vpc.main]
name = "${env.name}"
cidr = "${var.cidr}"
[resource.net_subnet.app]
for_each = "${var.zones}"
vpc = "${ref.net_vpc.main.id}"
cidr = "${each.value}"
zone = "x-${each.key}"
[resource.net_eip.nat]
for_each = "${var.zones}"
name = "nat-${each.key}"
subnet = "${ref.net_subnet.app[each].id}"
lifecycle = { create_first = true }
[resource.db_instance.main]
name = "${env.name}-main"
engine = "pg15"
size = "d1"
storage_gb = 20
retention_days = "${var.retention}"
public = false
subnets = ["${ref.net_subnet.app[*].id}"]
lifecycle = { keep = true }
[resource.dns_record.www]
zone = "z"
name = "www.${env.name}"
kind = "CNAME"
value = "${ref.db_instance.main.endpoint}"
ttl = "${var.ttl}"
"""

ENV = """
[env]
name = "{name}"
region = "eu1"
stage = "{stage}"
tags = {{ owner = "t" }}
[[use]]
module = "tiny"
as = "t"
[use.vars]
cidr = "10.0.0.0/16"
zones = {{ a = "10.0.1.0/24", b = "10.0.2.0/24" }}
"""


class Case(unittest.TestCase):
    """Gives each test a root of its own with the environments ``one`` (dev) and ``live`` (prd)."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("config", "provider", "policies", "calendar"):
            shutil.copytree(settings.ROOT / name, self.root / name)
        for name in ("modules", "envs/one", "envs/live", "state", "cloud", "audit", "data"):
            (self.root / name).mkdir(parents=True)
        (self.root / "modules" / "tiny.toml").write_text(MODULE)
        (self.root / "envs" / "one" / "env.toml").write_text(ENV.format(name="one", stage="dev"))
        (self.root / "envs" / "live" / "env.toml").write_text(ENV.format(name="live", stage="prd"))
        (self.root / "data" / "ipam.csv").write_text(
            "range,status,holder,note\n10.0.0.0/16,assigned,one,\n10.0.0.0/16,assigned,live,\n10.9.0.0/16,partner,p,\n"
        )
        self.settings = settings.load(self.root)

    def edit(self, path, old, new):
        file = self.root / path
        text = file.read_text()
        self.assertIn(old, text)
        file.write_text(text.replace(old, new))

    def plan(self, env="one", target=None):
        return planner.make(
            self.settings, config.load(self.settings, env), state.load(self.settings, env), Provider(self.settings, env), target
        )

    def apply(self, env="one", at=None):
        return executor.apply(self.settings, self.plan(env), at)

    def actions(self, env="one"):
        return [(each.action, each.address) for each in self.plan(env).actions]

    def state(self, env="one"):
        return state.load(self.settings, env)

    def provider(self, env="one"):
        return Provider(self.settings, env)
