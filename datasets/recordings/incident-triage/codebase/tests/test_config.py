import unittest

from tankline.config import ConfigError, env_of_bridge, load


class ConfigTest(unittest.TestCase):
    def test_own_value_over_base(self):
        self.assertEqual(load("prod-south")["gate"]["pending_release_min"], 90)

    def test_unknown(self):
        with self.assertRaises(ConfigError):
            load("prod-noth")

    def test_retired_host_serves_no_bridge(self):
        self.assertEqual(env_of_bridge("1"), "prod-north")
