"""The rows of the page's table of probes, each text kept once."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compression_eval.analysis.comparison.changes import MISS
from compression_eval.analysis.logs import Log
from compression_eval.analysis.report.arms import Arm
from compression_eval.analysis.report.reading import Frames
from compression_eval.analysis.report.survival import STAGES
from compression_eval.analysis.report.viewer import Viewer
from compression_eval.analysis.tables import clean
from compression_eval.grading.rubric import KNOWLEDGE, OVERALL, structure

if TYPE_CHECKING:
    from pandas import DataFrame

_LONGEST = {
    "question": 2000,
    "answer": 4000,
    "reason": 500,
    "fact": 200,
    "failure": 300,
    "line": 300,
}
_MAX_STATES = 4_000_000
"""Characters of all states that a page is made with; those after it cannot be held together."""


class _Texts:
    """Texts by number, each kept once: many rows share a question, a fact or a reason."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: object, kind: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(clean(text, _LONGEST[kind]), len(self._numbers))

    @property
    def all(self) -> list[str]:
        """Every text, by number."""
        return list(self._numbers)


def probe_data(
    frames: Frames, logs: Sequence[Log], arms: Sequence[Arm], viewer: Viewer
) -> dict[str, Any]:
    """Return what the page's script makes its table of; plain data, texts by number.

    Args:
        frames: Of all logs.
        logs: The logs that they were read from.
        arms: In the order of the page.
        viewer: How samples are reached.
    """
    texts = _Texts()
    facts, reasons = _facts(frames.facts, texts), _reasons(frames.criteria, texts)
    places = {arm.name: place for place, arm in enumerate(arms)}
    paths = {path: place for place, path in enumerate(dict.fromkeys(frames.samples["log_path"]))}
    scores = [KNOWLEDGE, OVERALL, *structure().dimensions, "fact_recall", "fact_survival"]
    columns = [
        *("arm", "log", "log_path", "unit", "probe_id", "probe_type", "epoch", "sample"),
        *("sample_uuid", "failure", "question", "answer"),
    ]
    rows = []
    values = frames.samples[scores].itertuples(index=False, name=None)
    cells = frames.samples[columns].itertuples(index=False, name=None)
    for cell, numbers in zip(cells, values, strict=True):
        arm, log, path, unit, probe, kind, epoch, sample, uuid, failure, question, answer = cell
        rows.append(
            {
                "arm": places[arm],
                "log": paths[path],
                "unit": clean(unit, 200),
                "probe": clean(probe, 200),
                "type": str(kind),
                "epoch": int(epoch),
                "sample": str(sample).encode("utf-8", "replace").decode(),
                "scores": [_number(value) for value in numbers],
                "failure": texts.number(failure, "failure") if failure else None,
                "question": texts.number(question, "question"),
                "answer": texts.number(answer, "answer"),
                "facts": facts.get((arm, log, unit, probe, epoch), []),
                "reasons": reasons.get(uuid, []),
            }
        )
    return {
        "arms": [arm.name for arm in arms],
        "logs": [viewer.link(path) for path in paths],
        "scores": scores,
        "miss": MISS,
        "stages": STAGES,
        "states": _states(frames.samples, logs, arms, texts),
        "texts": texts.all,
        "rows": rows,
    }


def _states(
    samples: "DataFrame", logs: Sequence[Log], arms: Sequence[Arm], texts: _Texts
) -> dict[str, dict[int, list[int]]]:
    """Return, per conversation and arm, the lines of one state, for arms to be held together.

    It is that of the first epoch. The controls have none here: one holds all, the other nothing.
    """
    found: dict[str, dict[int, list[int]]] = defaultdict(dict)
    left = _MAX_STATES
    fine = samples[samples["state_status"] == "ok"].sort_values("epoch", kind="stable")
    by_path = {log.path: log for log in logs}
    for place, arm in enumerate(arms):
        own = fine[fine["arm"] == arm.name].drop_duplicates("unit")
        cells = own[["log_path", "unit", "sample", "epoch"]].itertuples(index=False, name=None)
        for path, unit, sample, epoch in [] if arm.role else cells:
            lines = by_path[path].state_lines(sample, epoch)
            left -= sum(map(len, lines))
            if left < 0:
                return found
            found[clean(unit, 200)][place] = [texts.number(line, "line") for line in lines]
    return found


def _facts(facts: "DataFrame", texts: _Texts) -> dict[tuple[Any, ...], list[list[Any]]]:
    """Return, per sample, its facts: text, stage, and what stands in the state instead."""
    found: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    names = ["arm", "log", "fixture", "cut", "probe", "epoch", "fact", "stage", "instead"]
    for arm, log, fixture, cut, probe, epoch, fact, stage, instead in facts[names].itertuples(
        index=False, name=None
    ):
        also = ", ".join(map(str, instead)) if instead else ""
        found[arm, log, f"{fixture}@{cut}", probe, epoch].append(
            [texts.number(fact, "fact"), str(stage), clean(also, _LONGEST["fact"])]
        )
    return found


def _reasons(criteria: "DataFrame", texts: _Texts) -> dict[Any, list[list[Any]]]:
    """Return, per sample, its criteria: id, score, and what the graders said."""
    found: dict[Any, list[list[Any]]] = defaultdict(list)
    rows = criteria[(criteria["grader"] == "panel") & (criteria["grading"] == 0)]
    names = ["sample_uuid", "criterion", "score", "reasoning"]
    for uuid, criterion, score, reason in rows[names].itertuples(index=False, name=None):
        found[uuid].append([str(criterion), _number(score), texts.number(reason, "reason")])
    return found


def _number(value: Any) -> float | None:
    if value is None or math.isnan(float(value)):
        return None
    return round(float(value), 3)
