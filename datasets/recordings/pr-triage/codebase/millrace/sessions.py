"""What was said in each room, kept over restarts."""

import json
from pathlib import Path

SCHEMA = 3


class SessionIndex:
    """History per room; the key is the room string the adapter hands over."""

    def __init__(self, path=None, limit=40):
        self._path = Path(path) if path else None
        self._limit = limit
        self._rooms = {}
        if self._path and self._path.exists():
            stored = json.loads(self._path.read_text())
            if stored["schema"] != SCHEMA:
                raise ValueError(f"session store has schema {stored['schema']}, need {SCHEMA}")
            self._rooms = stored["rooms"]

    def history(self, room):
        return list(self._rooms.get(room, []))

    def add(self, room, speaker, text):
        entries = self._rooms.setdefault(room, [])
        entries.append([speaker, text])
        del entries[: -self._limit]

    def save(self):
        if self._path:
            self._path.write_text(json.dumps({"schema": SCHEMA, "rooms": self._rooms}))
