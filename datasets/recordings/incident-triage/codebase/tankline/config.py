"""Settings: config/base-prod.json, and over it the file of the environment."""

import json
from typing import Any

from tankline.data import ROOT

FOLDER = ROOT / "config"


class ConfigError(Exception):
    """A settings file that cannot be used."""


def load(env: str) -> dict[str, dict[str, Any]]:
    """Return the settings of an environment, section by section."""
    path = FOLDER / f"{env}.json"
    if not path.exists():
        raise ConfigError(f"config/{env}.json: no such environment")
    base = json.loads((FOLDER / "base-prod.json").read_text())
    own = json.loads(path.read_text())
    for section, values in own.items():
        if section.startswith("_"):
            continue
        # A key that base-prod does not know is taken as it is.
        base.setdefault(section, {}).update(values)
    return base


def hosts() -> dict[str, dict[str, str]]:
    """Return host name to service, environment and bridge."""
    return json.loads((FOLDER / "hosts.json").read_text())


def env_of_bridge(bridge: str) -> str:
    for host, entry in sorted(hosts().items()):
        if entry.get("bridge") == bridge and entry["state"] == "active":
            return entry["env"]
    raise ConfigError(f"config/hosts.json: no active host for bridge {bridge}")
