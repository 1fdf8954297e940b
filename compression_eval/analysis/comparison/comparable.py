"""What must be the same on both sides for two runs to be comparable, and what is not."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compression_eval.analysis.arms import graders_of
from compression_eval.analysis.comparison.sides import Side
from compression_eval.analysis.text_tables import printable
from compression_eval.fixtures.digests import shown
from compression_eval.fixtures.errors import DataError

_SHOWN_NAMES = 5

CONDITIONS: Mapping[str, str] = {
    "unfinished": "the run came to its end",
    "release": "scores of both releases mean the same",
    "fixtures": "the same conversations",
    "probes": "the same questions with the same answer keys",
    "question": "the same text around each question",
    "cycles": "as many compressions before each question",
    "min_removed": "the same gate for what counts as a compression",
    "rubric": "the same rubric",
    "language": "the rubric in the same language",
    "criteria": "the same choice of criteria",
    "grader": "the same graders with the same parameters",
    "grader_context": "graders saw the state on both sides, or on neither",
}
"""What has to hold for a comparison, by the name under which it can be allowed not to."""

_BY_COLUMN = {
    "question": "question_digest",
    "cycles": "cycles",
    "rubric": "rubric_digest",
    "language": "rubric_language",
    "criteria": "criteria",
    "grader": "graded_by",
    "grader_context": "grader_context",
}


@dataclass(frozen=True)
class Obstacle:
    """One thing that keeps two sides from being compared."""

    name: str
    """A name of `CONDITIONS`."""
    detail: str
    """What differs, in a few words."""

    def __str__(self) -> str:
        """Return both as one text."""
        return f"{self.name} ({self.detail})"


def check_comparable(base: Side, new: Side, allowed: Collection[str]) -> list[Obstacle]:
    """Return what differs but was allowed to.

    Args:
        base: One side.
        new: The other.
        allowed: Names of `CONDITIONS`.

    Raises:
        DataError: Something differs that was not allowed to; the text names all of it.
    """
    found = obstacles(base, new)
    refused = [each for each in found if each.name not in allowed]
    if refused:
        options = " ".join(f"--allow {each.name}" for each in refused)
        raise DataError(
            f"cannot be compared: {'; '.join(map(str, refused))} "
            f"(to compare what both have all the same: {options})"
        )
    return found


def obstacles(base: Side, new: Side) -> list[Obstacle]:
    """Return everything that differs and must not."""
    details = {
        "unfinished": _unfinished(base, new),
        "release": _two(_releases(base), _releases(new)),
        "fixtures": _fixtures(base, new),
        "probes": _probes(base, new),
        "min_removed": _two(_gates(base), _gates(new)),
        **{name: _per_unit(base, new, column) for name, column in _BY_COLUMN.items()},
    }
    if not base.regraded:
        details["grader"] = details["grader"] or _two(
            {graders_of(log) for log in base.logs}, {graders_of(log) for log in new.logs}
        )
    return [Obstacle(name, details[name]) for name in CONDITIONS if details[name]]


def _unfinished(base: Side, new: Side) -> str:
    return "; ".join(
        f"{log.path} ended early, {log.header.status}; finish it with: inspect eval-retry"
        for side in (base, new)
        for log in side.logs
        if not log.complete
    )


def _releases(side: Side) -> set[str]:
    """Return the part of the versions that rises when scores stop being comparable."""
    return {version.partition("-")[0] for version in side.versions}


def _gates(side: Side) -> set[str]:
    return {str((log.header.eval.metadata or {}).get("min_removed", "-")) for log in side.logs}


def _fixtures(base: Side, new: Side) -> str:
    first, second = (_digests(side, ["fixture"], "fixture_digest") for side in (base, new))
    return _sets_differ(first, second, "fixture")


def _probes(base: Side, new: Side) -> str:
    first, second = (_digests(side, ["unit", "probe_id"], "probe_digest") for side in (base, new))
    fixtures = set(base.samples["fixture"]) & set(new.samples["fixture"])
    kept = [
        {key: value for key, value in each.items() if key[0].rpartition("@")[0] in fixtures}
        for each in (first, second)
    ]
    return _sets_differ(kept[0], kept[1], "probe")


def _digests(side: Side, keys: list[str], column: str) -> dict[tuple[str, ...], set[str]]:
    """Return the digests under each key; none where no sample got as far as a record."""
    found: dict[tuple[str, ...], set[str]] = {}
    rows = side.samples[[*keys, column]].drop_duplicates()
    for row in rows.itertuples(index=False):
        values = found.setdefault(tuple(str(cell) for cell in row[:-1]), set())
        if isinstance(row[-1], str):
            values.add(row[-1])
    return found


def _sets_differ(
    first: Mapping[tuple[str, ...], set[str]],
    second: Mapping[tuple[str, ...], set[str]],
    noun: str,
) -> str:
    changed = [
        key
        for key in first.keys() & second.keys()
        if first[key] and second[key] and first[key] != second[key]
    ]
    parts = [
        _named(f"only in base: {noun}", first.keys() - second.keys()),
        _named(f"only in new: {noun}", second.keys() - first.keys()),
        _named(f"changed: {noun}", changed),
    ]
    return ", ".join(part for part in parts if part)


def _named(what: str, keys: Iterable[tuple[str, ...]]) -> str:
    names = sorted(printable(" ".join(key)) for key in keys)
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return f"{what} {', '.join(names[:_SHOWN_NAMES])}{more}"


def _per_unit(base: Side, new: Side, column: str) -> str:
    """Compare what two sides say about the conversations that both have."""
    first, second = (_values(side, column) for side in (base, new))
    for unit in sorted(first.keys() & second.keys()):
        found = _two(first[unit], second[unit])
        if found:
            return found
    return ""


def _values(side: Side, column: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in side.samples[["unit", column]].dropna().drop_duplicates().itertuples(index=False):
        found.setdefault(str(row[0]), set()).add(_value(row[1]))
    return found


def _value(value: Any) -> str:
    text = str(value)
    is_digest = len(text) == 64 and not set(text) - set("0123456789abcdef")
    return shown(text) if is_digest else text


def _two(first: set[str], second: set[str]) -> str:
    if first == second:
        return ""
    return f"base {', '.join(sorted(first))}, new {', '.join(sorted(second))}"
