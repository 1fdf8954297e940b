"""Structured logs: one JSON object a line, the same order of keys everywhere."""

import json
from datetime import datetime
from pathlib import Path


class Log:
    """Collects entries by service and environment."""

    def __init__(self) -> None:
        self.entries: list[dict[str, object]] = []

    def write(self, at: datetime, service: str, env: str, level: str, event: str, **fields: object) -> None:
        entry = {"at": at.strftime("%Y-%m-%dT%H:%M"), "service": service, "env": env, "level": level, "event": event}
        self.entries.append({**entry, **fields})

    def of(self, service: str, env: str | None = None) -> list[dict[str, object]]:
        return [e for e in self.entries if e["service"] == service and env in (None, e["env"])]

    def save(self, folder: Path, day: str) -> list[Path]:
        """Write one file for each service and environment; return the paths."""
        folder.mkdir(parents=True, exist_ok=True)
        saved = []
        for service, env in sorted({(str(e["service"]), str(e["env"])) for e in self.entries}):
            path = folder / f"{service}-{env}-{day}.jsonl"
            path.write_text("".join(json.dumps(e) + "\n" for e in self.of(service, env)))
            saved.append(path)
        return saved
