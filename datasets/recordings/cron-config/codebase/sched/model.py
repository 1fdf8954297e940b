"""A job and the settings it is checked against."""

import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass
class Job:
    id: str
    title: str
    days: list[str]
    at: str
    prompt: str
    channel: str
    tier: str
    tz: str = "Europe/Vienna"
    max_items: int | None = None
    max_words: int | None = None
    window_days: int = 7
    state: str = "active"
    pause_reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def limit(self) -> str:
        if self.max_words is not None:
            return f"{self.max_words} words"
        return f"{self.max_items} items"


@dataclass
class Settings:
    defaults: dict[str, Any]
    channels: dict[str, dict[str, Any]]
    reserved: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, root: Path) -> "Settings":
        def read(name: str) -> dict[str, Any]:
            return tomllib.loads((root / "config" / name).read_text(encoding="utf-8"))

        return cls(read("defaults.toml"), read("channels.toml"), read("reserved.toml")["window"])
