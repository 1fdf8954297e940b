"""What the provider knows: resource types and their attributes (provider/schema.json)."""

import json
from dataclasses import dataclass
from typing import Any

from trellis import TrellisError
from trellis.settings import Settings


@dataclass(frozen=True)
class ResourceType:
    """One type: its attributes, those that force a new object, and those the provider fills in."""

    name: str
    prefix: str
    attributes: dict[str, dict[str, Any]]
    computed: tuple[str, ...]

    def force_new(self, attribute: str) -> bool:
        """Tell whether a change of this attribute needs a new object."""
        return bool(self.attributes.get(attribute, {}).get("force_new"))

    def check(self, address: str, attrs: dict[str, Any]) -> list[str]:
        """Return what is wrong with the attributes of one resource."""
        faults = [f"{address}: {name} is not an attribute of {self.name}" for name in attrs if name not in self.attributes]
        for name, rule in self.attributes.items():
            if rule.get("required") and name not in attrs:
                faults.append(f"{address}: {name} is missing")
            value = attrs.get(name)
            if value is None or (isinstance(value, str) and value.startswith("@{")):
                continue
            kinds = {"str": str, "int": int, "bool": bool, "list": list, "map": dict}
            if not isinstance(value, kinds[rule["type"]]):
                faults.append(f"{address}: {name} must be {rule['type']}, not {type(value).__name__}")
            if "one_of" in rule and value not in rule["one_of"]:
                faults.append(f"{address}: {name} must be one of {rule['one_of']}, not {value!r}")
        return faults


def load(settings: Settings) -> dict[str, ResourceType]:
    """Read the types."""
    text = settings.path("provider", "schema.json").read_text()
    return {
        name: ResourceType(name, entry["prefix"], entry["attributes"], tuple(entry.get("computed", ())))
        for name, entry in json.loads(text).items()
    }


def get(types: dict[str, ResourceType], name: str) -> ResourceType:
    """Return a type, or say which there are."""
    if name not in types:
        raise TrellisError(f"{name}: no such resource type, expected one of {', '.join(sorted(types))}")
    return types[name]
