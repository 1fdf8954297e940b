"""The provider, simulated: objects of one account in cloud/ENV.json.

The file is a copy of what the account held at the time of the snapshot (config/trellis.ini). The rules
are the provider's: quotas, capacity, what may be changed, what is in use. Errors carry its codes.
"""

import hashlib
import ipaddress
import json
from typing import Any

from trellis import TrellisError, schema
from trellis.settings import Settings


class ProviderError(TrellisError):
    """The provider said no."""


class Provider:
    """One account. Every call is written through at once, as with the real one."""

    def __init__(self, settings: Settings, env: str, at: str | None = None) -> None:
        self.settings = settings
        self.env = env
        self.at = at or settings.snapshot
        self.types = schema.load(settings)
        self.path = settings.path("cloud", f"{env}.json")
        data = json.loads(self.path.read_text()) if self.path.exists() else {"counter": 0, "quota": {}, "capacity": {}, "objects": {}}
        self.counter: int = data["counter"]
        self.quota: dict[str, int] = data["quota"]
        self.capacity: dict[str, int] = data["capacity"]
        self.objects: dict[str, dict[str, Any]] = data["objects"]

    def _save(self, action: str, identifier: str, detail: str) -> None:
        head = {"counter": self.counter, "quota": self.quota, "capacity": self.capacity}
        rows = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(self.objects.items())]
        self.path.write_text(json.dumps(head, sort_keys=True)[:-1] + ', "objects": {\n' + ",\n".join(rows) + "\n}}\n")
        with self.settings.path("audit", f"{self.env}.csv").open("a") as file:
            file.write(f"{self.at},{self.settings.actor},{action},{identifier},{detail}\n")

    def get(self, identifier: str) -> dict[str, Any] | None:
        """Return the attributes of an object, or None if there is none."""
        found = self.objects.get(identifier)
        return None if found is None else dict(found["attrs"])

    def used(self, kind: str) -> int:
        """Return how many objects of a type there are."""
        return sum(1 for each in self.objects.values() if each["type"] == kind)

    def create(self, kind: str, attrs: dict[str, Any]) -> str:
        """Make an object and return its id."""
        limit = self.quota.get(kind)
        if limit is not None and self.used(kind) >= limit:
            raise ProviderError(f"E-4290 QuotaExceeded: {kind} {self.used(kind)} of {limit} in {self.env}")
        self._check(kind, attrs, None)
        if kind == "vm_node":
            place = f"{attrs['zone']}/{attrs['size']}"
            if self.capacity.get(place, 99) <= 0:
                raise ProviderError(f"E-5031 NoCapacity: {attrs['size']} in {attrs['zone']}, try another zone or size")
            if place in self.capacity:
                self.capacity[place] -= 1
        self.counter += 1
        digest = hashlib.sha256(f"{self.env}:{kind}:{self.counter}".encode()).hexdigest()
        identifier = f"{self.types[kind].prefix}-{digest[:6]}"
        self.objects[identifier] = {"type": kind, "attrs": self._complete(kind, identifier, attrs)}
        self._save("create", identifier, kind)
        return identifier

    def update(self, identifier: str, attrs: dict[str, Any]) -> None:
        """Change an object where it stands."""
        found = self.objects[identifier]
        kind = found["type"]
        fixed = [name for name, value in attrs.items() if found["attrs"].get(name) != value and self.types[kind].force_new(name)]
        if fixed:
            raise ProviderError(f"E-4001 Immutable: {', '.join(fixed)} of {identifier}")
        self._check(kind, attrs, identifier)
        changed = sorted(name for name, value in attrs.items() if found["attrs"].get(name) != value)
        found["attrs"] = self._complete(kind, identifier, {**found["attrs"], **attrs})
        self._save("update", identifier, " ".join(changed))

    def delete(self, identifier: str) -> None:
        """Remove an object; one that others refer to cannot be removed."""
        users = [key for key, each in self.objects.items() if key != identifier and identifier in json.dumps(each["attrs"])]
        if users:
            raise ProviderError(f"E-4091 InUse: {identifier} is used by {', '.join(sorted(users))}")
        kind = self.objects.pop(identifier)["type"]
        self._save("delete", identifier, kind)

    def _complete(self, kind: str, identifier: str, attrs: dict[str, Any]) -> dict[str, Any]:
        """Fill in what the provider decides, and bring lists into its order."""
        done = {key: sorted(value) if isinstance(value, list) else value for key, value in attrs.items()}
        number = int(identifier.split("-")[1], 16)
        if kind == "net_eip":
            done["address"] = f"203.0.113.{number % 250 + 1}"
        if kind == "db_instance":
            done["endpoint"] = f"{done['name']}.{identifier}.db.internal"
        if kind == "sec_key":
            done["fingerprint"] = hashlib.sha256(f"{identifier}:{done['generation']}".encode()).hexdigest()[:10]
        return done

    def _check(self, kind: str, attrs: dict[str, Any], identifier: str | None) -> None:
        old = self.objects[identifier]["attrs"] if identifier else {}
        if kind == "net_vpc":
            extra = attrs.get("extra_cidrs", [])
            if len(extra) > 1:
                raise ProviderError("E-4006 TooManyRanges: a network has one extra range at most")
            for text in extra:
                if not 17 <= ipaddress.ip_network(text).prefixlen <= 24:
                    raise ProviderError(f"E-4002 BadRange: {text}, an extra range is /17 to /24")
        if kind == "net_subnet":
            mine = ipaddress.ip_network(attrs["cidr"])
            vpc = self.objects[attrs["vpc"]]["attrs"]
            ranges = [ipaddress.ip_network(each) for each in [vpc["cidr"], *vpc.get("extra_cidrs", [])]]
            if not any(mine.subnet_of(each) for each in ranges):
                raise ProviderError(f"E-4003 OutOfRange: {mine} is in none of {', '.join(map(str, ranges))}")
            for key, each in self.objects.items():
                if key != identifier and each["type"] == kind and each["attrs"]["vpc"] == attrs["vpc"]:
                    if mine.overlaps(ipaddress.ip_network(each["attrs"]["cidr"])):
                        raise ProviderError(f"E-4004 Overlap: {mine} with {key} ({each['attrs']['cidr']})")
        if kind == "db_instance" and attrs.get("storage_gb", 0) < old.get("storage_gb", 0):
            raise ProviderError(f"E-4005 Shrink: storage of {identifier} cannot go from {old['storage_gb']} to {attrs['storage_gb']}")
        if kind in ("obj_bucket", "dns_record") and identifier is None:
            for key, each in self.objects.items():
                if each["type"] == kind and each["attrs"]["name"] == attrs["name"]:
                    raise ProviderError(f"E-4092 Exists: {attrs['name']} is {key}")
        if kind == "sec_key" and old and attrs.get("generation", 0) < old["generation"]:
            raise ProviderError(f"E-4007 Generation: {identifier} is at {old['generation']} and does not go back")
