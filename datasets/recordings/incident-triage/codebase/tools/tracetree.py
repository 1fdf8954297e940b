"""Print a trace: ``python -m tools.tracetree traces/FILE [TRACE]``; without one, list them."""

import json
import sys
from pathlib import Path


def main() -> None:
    spans = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    if len(sys.argv) == 2:
        for trace in sorted({s["trace"] for s in spans}):
            own = [s for s in spans if s["trace"] == trace]
            print(f"{trace}  {own[0]['at']}  {own[0]['name']}  {len(own)} spans")
        return

    def show(parent: str | None, depth: int) -> None:
        for span in spans:
            if span["trace"] == sys.argv[2] and span["parent"] == parent:
                attributes = " ".join(f"{k}={v}" for k, v in span["attributes"].items())
                print(f"{span['at']}  {span['ms']:7d} ms  {'  ' * depth}{span['service']}.{span['name']}  {attributes}")
                show(span["span"], depth + 1)

    show(None, 0)


if __name__ == "__main__":
    main()
