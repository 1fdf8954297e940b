"""Reads an environment file into `Settings`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from middleware.cors import CorsSettings
from middleware.rate_limit import RateLimitSettings

FOLDER = Path(__file__).resolve().parent / "environments"
ENVIRONMENTS = ("dev", "staging", "prod")


class SettingsError(Exception):
    """An environment file is missing or says something that cannot be meant."""


@dataclass(frozen=True)
class Settings:
    environment: str
    middleware: tuple[str, ...]
    public_paths: tuple[str, ...]
    audience: str
    active_kid: str
    signing_keys: dict[str, str]
    token_ttl_s: int
    session_ttl_s: int
    cors: CorsSettings
    rate_limit: RateLimitSettings
    workers: tuple[str, ...]


def load(environment: str) -> Settings:
    """Return the settings of ``dev``, ``staging`` or ``prod``.

    Raises:
        SettingsError: The file is missing, or a value is out of range.
    """
    if environment not in ENVIRONMENTS:
        raise SettingsError(f"unknown environment {environment!r}, expected one of {ENVIRONMENTS}")
    path = FOLDER / f"{environment}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    settings = Settings(
        environment=environment,
        middleware=tuple(data["middleware"]),
        public_paths=tuple(data["public_paths"]),
        audience=data["tokens"]["audience"],
        active_kid=data["tokens"]["active_kid"],
        signing_keys=data["tokens"]["keys"],
        token_ttl_s=_seconds(data["tokens"], "ttl_s"),
        session_ttl_s=_seconds(data["sessions"], "ttl_s"),
        cors=CorsSettings(**_tuples(data["cors"])),
        rate_limit=RateLimitSettings(**_tuples(data["rate_limit"])),
        workers=tuple(data["workers"]),
    )
    if settings.token_ttl_s > settings.session_ttl_s:
        raise SettingsError(f"{path.name}: a token would outlive its session")
    return settings


def _seconds(section: dict[str, Any], key: str) -> int:
    value = section[key]
    if not isinstance(value, int) or value <= 0:
        raise SettingsError(f"{key} must be a whole number of seconds, got {value!r}")
    return value


def _tuples(section: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in section.items()}
