"""Settings of a season."""

import json

from toadline.paths import ROOT

REQUIRED = (
    "season", "first_night", "last_night", "merge_seconds", "min_len_ms", "detection",
    "closure_temp", "closure_rain_mm", "closure_cap", "window", "draws", "interval", "seed",
)


def load(name: str = "settings.json") -> dict:
    """Return the settings in ``config/NAME``; ValueError if one is missing."""
    settings = json.loads((ROOT / "config" / name).read_text())
    missing = [key for key in REQUIRED if key not in settings]
    if missing:
        raise ValueError(f"config/{name}: missing {', '.join(missing)}")
    return settings
