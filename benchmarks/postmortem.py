"""What agents fetched again after compactions, against control windows and shifted compactions.

    python -m benchmarks.postmortem FOLDER

The table of docs/postmortem.md for any folder of sessions. Shifted by 25 calls, there is no
compaction where one is looked for, so the differences should be near nothing.
"""

import argparse
import math

from compression_eval.analysis.postmortem import page
from compression_eval.postmortem.sessions import over_sessions, read_sessions
from compression_eval.text.tables import as_text

SHIFTS = (-25, 25)


def main() -> None:
    """Print the table of the compactions, and the difference of shifted ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    folders = parser.parse_args().folders
    rows = [row for row in read_sessions(folders) if row.compactions]
    print(as_text([each for each in page(rows) if each.title == "All sessions"], 140))
    if not over_sessions(rows):
        raise SystemExit("no compaction here has enough calls and control windows to be judged")
    for shift in SHIFTS:
        shifted = list(read_sessions(folders, shift=shift))
        for mean in over_sessions(shifted):
            few = math.isnan(mean.low)
            limits = "too few threads" if few else f"{mean.low:,.0f} to {mean.high:,.0f}"
            print(f"shifted by {shift:+d}: {mean.measure} {mean.difference:+,.0f} ({limits})")


if __name__ == "__main__":
    main()
