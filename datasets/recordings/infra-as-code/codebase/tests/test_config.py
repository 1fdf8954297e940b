from tests.base import Case
from trellis import TrellisError, config


class ConfigTest(Case):
    def test_addresses_and_tokens(self):
        env = config.load(self.settings, "one")
        self.assertEqual(len(env.wanted), 7)
        self.assertEqual(env.wanted["t.net_eip.nat[b]"].needs, ["t.net_subnet.app[b]"])
        self.assertEqual(env.wanted["t.net_subnet.app[a]"].attrs["cidr"], "10.0.1.0/24")

    def test_default_tags(self):
        env = config.load(self.settings, "one")
        self.assertEqual(env.wanted["t.net_vpc.main"].attrs["tags"], {"owner": "t"})

    def test_faults_are_named(self):
        cases = [
            ('cidr = "10.0.0.0/16"\n', "", "variable cidr is not given"),
            ('cidr = "10.0.0.0/16"\n', 'cidr = "10.0.0.0/16"\ncidr_2 = "x"\n', "no variable cidr_2"),
            ('as = "t"', 'as = "t"\nversion = "2.0.0"', "wants tiny 2.0.0, modules/ has 1.0.0"),
        ]
        for old, new, message in cases:
            with self.subTest(message):
                before = (self.root / "envs/one/env.toml").read_text()
                self.edit("envs/one/env.toml", old, new)
                with self.assertRaisesRegex(TrellisError, message):
                    config.load(self.settings, "one")
                (self.root / "envs/one/env.toml").write_text(before)

    def test_types_are_checked(self):
        self.edit("modules/tiny.toml", 'size = "d1"', 'size = "d3"')
        with self.assertRaisesRegex(TrellisError, "size must be one of"):
            config.load(self.settings, "one")

    def test_unknown_environment(self):
        with self.assertRaisesRegex(TrellisError, "expected one of live, one"):
            config.load(self.settings, "two")
