"""What agents fetched again after compactions, against control windows and shifted compactions.

    python -m benchmarks.postmortem FOLDER

The table of docs/postmortem.md for any folder of sessions. Shifted by 25 calls, there is no
compaction where one is looked for, so the differences should be near nothing.
"""

import sys

from compression_eval.analysis.postmortem import page
from compression_eval.postmortem.sessions import over_sessions, read_sessions
from compression_eval.text.tables import as_text

SHIFTS = (-25, 25)


def main(folders: list[str]) -> None:
    """Print the table of the compactions, and the difference of shifted ones."""
    rows = list(read_sessions(folders))
    (table,) = [section for section in page(rows) if section.title == "All sessions"]
    print(as_text([table], 140))
    for shift in SHIFTS:
        shifted = list(read_sessions(folders, shift=shift))
        for mean in over_sessions(shifted):
            limits = f"{mean.low:,.0f} to {mean.high:,.0f}"
            print(f"shifted by {shift:+d}: {mean.measure} {mean.difference:+,.0f} ({limits})")


if __name__ == "__main__":
    main(sys.argv[1:])
