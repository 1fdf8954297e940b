"""What a night costs, in counts: ``python -m tools.count --env ENV --night DAY [--top N] [--callers NAME]``."""

import argparse
import logging
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sluicework.config import load
from sluicework.pipeline import run


class Calls:
    """Counts calls of Python functions; not those of built-in ones, nor comprehensions."""

    def __init__(self, callers_of: str = "") -> None:
        self.by_code: dict[CodeType, int] = defaultdict(int)
        self.callers: Counter[str] = Counter()
        self.callers_of = callers_of

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.by_code[frame.f_code] += 1
            if frame.f_code.co_name == self.callers_of and frame.f_back:
                self.callers[self.name(frame.f_back.f_code)] += 1

    @property
    def by_function(self) -> Counter[str]:
        """The calls by module and function."""
        found: Counter[str] = Counter()
        for code, number in self.by_code.items():
            if not code.co_name.startswith("<"):
                found[self.name(code)] += number
        return found

    @staticmethod
    def name(code: CodeType) -> str:
        return f"{Path(code.co_filename).stem}.{code.co_name}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", required=True)
    parser.add_argument("--night", required=True)
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--callers", default="")
    parser.add_argument("--files", type=int, default=0, help="name the N files opened most")
    options = parser.parse_args()
    settings = load(options.env)
    logging.basicConfig(level=settings.log_level, stream=sys.stderr)
    calls = Calls(options.callers)
    run(settings, "2026-02-26", "out/warm")  # imports and compiled patterns are no cost of the night
    sys.setprofile(calls)
    try:
        result = run(settings, options.night, f"out/{options.night}")
    finally:
        sys.setprofile(None)
    counts = result.files.counts
    print(f"readings {result.read}  kept {result.kept}")
    print(f"calls {sum(calls.by_function.values())}  opened {counts['opened']}  bytes read {counts['read']}  "
          f"bytes written {counts['written']}  rows held {result.rows_held}")
    for name, number in sorted(calls.by_function.items(), key=lambda e: (-e[1], e[0]))[: options.top]:
        print(f"{number:9}  {name}")
    for name, number in sorted(calls.callers.items(), key=lambda e: (-e[1], e[0])):
        print(f"{number:9}  {options.callers} called by {name}")
    for name, number in sorted(result.files.by_name.items(), key=lambda e: (-e[1], e[0]))[: options.files]:
        print(f"{number:9}  opened {name}")


if __name__ == "__main__":
    main()
