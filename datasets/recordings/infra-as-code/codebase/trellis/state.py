"""State files: which object at the provider belongs to which address."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis import TrellisError
from trellis.settings import Settings

FORMAT = 4


@dataclass
class Entry:
    """One resource as it was when the state was last written."""

    id: str
    attrs: dict[str, Any]
    needs: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        return {"id": self.id, "needs": self.needs, "attrs": self.attrs}


@dataclass
class State:
    """The state of one environment."""

    path: Path
    lineage: str
    serial: int
    resources: dict[str, Entry]

    def save(self) -> None:
        """Write the file with the next serial; one line per resource, so that a diff can be read."""
        self.serial += 1
        head = {"format": FORMAT, "lineage": self.lineage, "serial": self.serial}
        rows = [f"  {json.dumps(key)}: {json.dumps(self.resources[key].plain(), sort_keys=True)}" for key in sorted(self.resources)]
        text = json.dumps(head)[:-1] + ', "resources": {\n' + ",\n".join(rows) + "\n}}\n"
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(text)
        temporary.replace(self.path)

    def move(self, old: str, new: str) -> None:
        """Give a resource another address; the object is not touched."""
        if old not in self.resources:
            raise TrellisError(f"{old}: not in the state")
        if new in self.resources:
            raise TrellisError(f"{new}: already in the state")
        if old.split(".")[1] != new.split(".")[1]:
            raise TrellisError(f"{old} and {new} are of different types")
        self.resources[new] = self.resources.pop(old)


def load(settings: Settings, env: str) -> State:
    """Read the state of an environment."""
    path = settings.path("state", f"{env}.json")
    if not path.exists():
        return State(path, f"ln-{env}", 0, {})
    data = json.loads(path.read_text())
    if data["format"] != FORMAT:
        raise TrellisError(f"{path.name}: format {data['format']}, expected {FORMAT}")
    return State(path, data["lineage"], data["serial"], {key: Entry(**value) for key, value in data["resources"].items()})


def check_lock(settings: Settings, env: str) -> None:
    """Fail if somebody holds the state."""
    path = settings.path("state", f"{env}.lock")
    if path.exists():
        lock = json.loads(path.read_text())
        raise TrellisError(f"E-LOCK {env}: locked by {lock['who']} since {lock['since']} ({lock['id']}: {lock['why']})")


def unlock(settings: Settings, env: str, identifier: str) -> None:
    """Take a lock away, if it is the one that is meant."""
    path = settings.path("state", f"{env}.lock")
    if not path.exists():
        raise TrellisError(f"{env}: not locked")
    lock = json.loads(path.read_text())
    if lock["id"] != identifier:
        raise TrellisError(f"{env}: the lock is {lock['id']}, not {identifier}")
    path.unlink()
