"""Put given-up results back: ``python -m tools.requeue FILE [--out FOLDER]``.

FILE is an export of a topic, one result a line. Each is offered to the matcher once more, against
the register as it stands at 09:00. Written for lab.results.dead, in the time of version 2 files.
"""

import argparse
import json
from datetime import timedelta
from pathlib import Path

from tankline.data import when
from tankline.model import Message, Result
from tankline.replay import Replay


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--until", default="09:00")
    options = parser.parse_args()
    replay = Replay("2026-03-02")
    replay.run(options.until)
    matcher = replay.matchers["prod-north"]
    at = replay.start + timedelta(hours=int(options.until[:2]), minutes=int(options.until[3:]))
    matched = 0
    lines = options.file.read_text().splitlines()
    for line in lines:
        entry = json.loads(line)
        result = Result(
            id=entry["id"], file=entry["file"], label=entry["label"], bench=entry["bench"],
            inhibitor=entry["inhibitor"], measured_at=when(entry["measured_at"]),
        )
        matched += matcher.handle(at, Message(result, attempts=4)) is not None
    print(f"{len(lines)} results, {matched} matched, {len(lines) - matched} not")


if __name__ == "__main__":
    main()
