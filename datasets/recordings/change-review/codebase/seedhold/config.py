"""Settings of a site: config/default.json, and over it config/SITE.json."""

import json
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Settings:
    """What differs between the vault and the field station."""

    site: str
    db: str
    floor_base: int
    floor_active: int
    min_viability: int
    retest_months: int
    quarantine_blocks: bool = True
    courier_batch: int = 40

    def floor(self, collection: str) -> int:
        """Return how many seeds of an accession are never given away."""
        return self.floor_base if collection == "base" else self.floor_active


def load(site: str, folder: Path = ROOT / "config") -> Settings:
    """Read the settings of a site."""
    values = json.loads((folder / "default.json").read_text())
    values.update(json.loads((folder / f"{site}.json").read_text()))
    return Settings(**values)
