"""Settings of an environment."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MODES = ("legacy", "dual", "dual_v2", "v2")


@dataclass(frozen=True)
class Replica:
    apply_rows_per_s: int = 1000
    max_lag_s: int = 20


@dataclass(frozen=True)
class Settings:
    env: str
    db: str
    returns_mode: str = "legacy"
    voucher_days: int = 90
    foreign_keys: bool = True
    replica: Replica = field(default_factory=Replica)

    def __post_init__(self) -> None:
        if self.returns_mode not in MODES:
            raise ValueError(f"returns_mode {self.returns_mode!r}: expected one of {MODES}")


def load(env: str) -> Settings:
    """Return the settings of ``config/ENV.json``."""
    values: dict[str, Any] = json.loads((ROOT / "config" / f"{env}.json").read_text())
    replica = Replica(**values.pop("replica", {}))
    return Settings(env=env, replica=replica, **values)
