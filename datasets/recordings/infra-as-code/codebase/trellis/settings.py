"""Settings of the tool itself, from config/trellis.ini."""

import configparser
from dataclasses import dataclass
from pathlib import Path

from trellis import TrellisError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """Where things are, and the time the simulator stands at."""

    root: Path
    snapshot: str
    local_offset: int
    cost_cap: int
    actor: str

    def path(self, *parts: str) -> Path:
        """Return a path below the root."""
        return self.root.joinpath(*parts)


def load(root: Path = ROOT) -> Settings:
    """Read config/trellis.ini."""
    parser = configparser.ConfigParser()
    file = root / "config" / "trellis.ini"
    if not parser.read(file):
        raise TrellisError(f"{file}: no such settings")
    return Settings(
        root=root,
        snapshot=parser["clock"]["snapshot"],
        local_offset=parser["clock"].getint("local_offset_hours"),
        cost_cap=parser["cost"].getint("cap_eur"),
        actor=parser["apply"]["actor"],
    )
