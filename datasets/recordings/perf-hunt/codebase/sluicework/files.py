"""All reading and writing, counted."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent


class Files:
    """Text files below the project; `counts` has opened, read and written."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_name: Counter[str] = Counter()

    def read(self, path: str | Path) -> str:
        """Return the text of a file."""
        text = (ROOT / path).read_text(encoding="utf-8")
        self._note(path, "read", text)
        return text

    def write(self, path: str | Path, text: str) -> None:
        """Replace a file by a text."""
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        self._note(path, "written", text)

    def append(self, path: str | Path, text: str) -> None:
        """Add a text to the end of a file."""
        with (ROOT / path).open("a", encoding="utf-8") as file:
            file.write(text)
        self._note(path, "written", text)

    def exists(self, path: str | Path) -> bool:
        return (ROOT / path).exists()

    def _note(self, path: str | Path, what: str, text: str) -> None:
        self.counts["opened"] += 1
        self.counts[what] += len(text.encode())
        self.by_name[str(path)] += 1
