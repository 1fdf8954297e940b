"""Settings of an environment."""

import json
from dataclasses import dataclass
from pathlib import Path

from sluicework.files import ROOT


@dataclass(frozen=True)
class Settings:
    night_folder: str
    max_rows_held: int
    batch_rows: int = 1
    log_level: str = "WARNING"


def load(env: str) -> Settings:
    """Return the settings of ``config/ENV.json``."""
    return Settings(**json.loads(Path(ROOT / "config" / f"{env}.json").read_text()))
