"""Settings of one pump, read from an INI file."""

import configparser
from dataclasses import dataclass
from pathlib import Path


class ConfigError(ValueError):
    """A setting is missing or has a value that cannot be used."""


@dataclass(frozen=True)
class Config:
    spool: Path
    sink: Path
    ledger: Path
    flush_bytes: int
    interval_s: int
    settle_s: int


def load(path: Path) -> Config:
    """Read the settings; relative paths count from the folder of the file."""
    parser = configparser.ConfigParser()
    if not parser.read(path):
        raise ConfigError(f"{path}: cannot be read")
    if not parser.has_section("pump"):
        raise ConfigError(f"{path}: no [pump] section")
    pump = parser["pump"]
    return Config(
        spool=path.parent / pump.get("spool", "spool"),
        sink=path.parent / pump.get("sink", "out"),
        ledger=path.parent / pump.get("ledger", "ledger.jsonl"),
        flush_bytes=_whole(pump, "flush_bytes", 6144, least=512),
        interval_s=_whole(pump, "interval_s", 30, least=1),
        settle_s=_whole(pump, "settle_s", 5, least=0),
    )


def _whole(section: configparser.SectionProxy, key: str, default: int, least: int) -> int:
    text = section.get(key, str(default))
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"[{section.name}] {key}: {text!r} is not a whole number") from None
    if value < least:
        raise ConfigError(f"[{section.name}] {key}: {value} is below {least}")
    return value
