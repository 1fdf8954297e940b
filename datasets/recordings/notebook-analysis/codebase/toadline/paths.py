"""Where things lie."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
CORRECTIONS = ROOT / "corrections"
REPORTS = ROOT / "reports"
