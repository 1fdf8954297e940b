"""Runs of scripted models whose scores are known beforehand."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log

from compression_eval.cli import main
from tests.e2e import scripted, small
from tests.e2e.scripted import ANSWERS, COMPRESSES, GRADES, Call, Script

EPOCHS = 4
"""Half of the compressions are even ones and half odd: what `swinging` grades by."""

GOOD = "The code was E4401 in auth/session.py."
BAD = "Some code stood in some file."


_RUNS = count()


def even(call: Call) -> bool:
    """Return whether the state that a grader reads was written by an even call."""
    found = re.search(r"written by call (\d+)", call.text)
    return found is not None and int(found[1]) % 2 == 0


def in_turns(mark: str) -> Callable[[Call], str]:
    """Return a summariser that numbers its calls apart for two conversations.

    However their calls interleave, half of the states of each are even.
    """
    numbers = {True: count(), False: count()}

    def reply(call: Call) -> str:
        return scripted.proper_compression(replace(call, number=next(numbers[mark in call.text])))

    return reply


def swinging(
    good: float = 4.0, bad: float = 3.0, more: Mapping[str, float] | None = None
) -> Callable[[Call], str]:
    """Return a grader that gives as much more to even states as it gives less to odd ones."""
    swings = more or {}

    def reply(call: Call) -> str:
        score = good if '"model_response": "The code was' in call.text else bad
        sign = 1 if even(call) else -1
        results = [
            {
                "criterionId": id_,
                "score": score + sign * swings.get(id_.partition("_")[0], 0.1),
                "reasoning": "Because.",
            }
            for id_ in scripted.criteria_in(call.text)
        ]
        word = "stated" if score == good else "missing"
        facts = scripted.fact_words(scripted.facts_in(call.text), word)
        return json.dumps({"criterionResults": results, "facts": facts})

    return reply


def evaluated(
    folder: Path,
    *names: str,
    answer: str | Callable[[Call], str] = GOOD,
    grader: Callable[[Call], str] | None = None,
    compresses: Callable[[Call], Any] = scripted.proper_compression,
    data: Path | None = None,
    status: str = "success",
    **given: Any,
) -> EvalLog:
    """Run one arm on small conversations; the log goes to a folder of its own."""
    run = next(_RUNS)
    scripted.SCRIPTS.update(
        {
            # No two models word all their answers alike, and no two runs of one do.
            ANSWERS: Script(answer if callable(answer) else lambda _: f"{answer} ({run})"),
            GRADES: Script(grader or swinging()),
            COMPRESSES: Script(compresses),
        }
    )
    names = names or ("tiny",)
    if data is None:
        data = folder.parent / "data"
        for name in names:
            small.write(data, name)
    given.setdefault("epochs", EPOCHS)
    log = small.run(folder, [data / f"{name}.json" for name in names], **given)
    assert log.status == status, log.error
    return log


def controls(folder: Path, *names: str, full: float = 4.0, none: float = 0.0, **given: Any) -> Path:
    """Run the arms none and full, graded as is said; returns the folder of their logs."""
    for name, score in (("none", none), ("full", full)):
        grader = swinging(score, score, dict.fromkeys(BEGINNINGS, 0.0))
        own: dict[str, Any] = {
            "compressor": name,
            "compressor_args": {},
            "epochs": 1,
            "grader": grader,
        }
        evaluated(folder, *names, **own | given)
    return folder


BEGINNINGS = ("accuracy", "context", "artifact", "completeness", "continuity", "instruction")
"""Of the names of criteria."""


def compared(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


@cache
def as_json(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Run the command for JSON; returns its exit code and what it said.

    Logs stay as they are once they are compared, so the same comparison is made once.
    """
    done = compared(*arguments, "--format", "json")
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.stdout, done.stderr
    return done.exit_code, json.loads(done.stdout)


def verdicts(found: dict[str, Any]) -> dict[str, str]:
    """Return the verdict on each measure, the deciding one first."""
    decision = found["decision"]
    return {decision["measure"]: decision["verdict"]} | {
        line["measure"]: line["verdict"] for line in found["other_measures"]
    }


def refused(done: Result) -> str:
    """Return the error of a command that could not compare, which is one clean line."""
    assert done.exit_code == 2, done.stdout
    assert not done.stdout
    assert isinstance(done.exception, SystemExit)
    lines = [line for line in done.stderr.splitlines() if line != "reading logs"]
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("Error: ")


def changed(log: EvalLog, folder: Path, change: Callable[[EvalLog], None]) -> Path:
    """Write a changed copy of a log; returns its file."""
    copy = read_eval_log(log.location)
    change(copy)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "changed.eval"
    write_eval_log(copy, str(path))
    return path
