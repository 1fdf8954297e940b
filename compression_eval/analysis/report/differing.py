"""What arms do not have in common, so that their figures are not strictly beside one another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

_SAME_EVERYWHERE: Mapping[str, str] = {
    "model": "model under test",
    "graded_by": "grader",
    "grader_context": "what the grader sees of the state",
    "criteria": "graded criteria",
    "token_counter": "token counter",
    "cycles": "compressions before each question",
}
_SAME_PER_UNIT: Mapping[str, str] = {
    "fixture_digest": "fixture",
    "rubric_digest": "rubric",
    "question_digest": "words around the question",
}
_SAME_PER_PROBE: Mapping[str, str] = {"probe_digest": "probe"}

_NAMED = 5


def differing(samples: "DataFrame") -> list[str]:
    """Return a line for each thing that differs; empty if the arms can be compared as they are."""
    lines = []
    for column, title in _SAME_EVERYWHERE.items():
        found = sorted({str(value) for value in samples[column].dropna() if value != ""})
        if len(found) > 1:
            lines.append(f"{title}: {', '.join(_short(value) for value in found[:_NAMED])}")
    for columns, keys in ((_SAME_PER_UNIT, ["unit"]), (_SAME_PER_PROBE, ["unit", "sample"])):
        for column, title in columns.items():
            counts = samples.groupby(keys)[column].nunique()
            changed = [_name(key) for key in counts[counts > 1].index]
            if changed:
                more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
                lines.append(f"{title} in two versions: {', '.join(changed[:_NAMED])}{more}")
    probes = samples[["arm", "unit", "sample"]].drop_duplicates()
    arms = samples["arm"].nunique()
    if (probes.groupby(["unit", "sample"]).size() < arms).any():
        lines.append("probes: not every arm was asked all of them")
    return lines


def _name(key: object) -> str:
    return _short(str(key[-1] if isinstance(key, tuple) else key))


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
