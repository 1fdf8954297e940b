"""Which expected facts an answer states.

A fact is looked up in the whole answer (`text.matching`). Two kinds of matches do not count:

* Where a sign of denial or of the past stands close by ("not FER-512", "up from 250 ms",
  "Postgres was ruled out"). The signs are words in the rubric's data. An answer may be asked for
  just that, so a sign does not count if the fact's own forms have one, if the question has one, or
  if the reference answer denies the fact too.
* Where the answer gives it under another key. If the reference answer is JSON, a table or lines
  of `name: value`, and the answer has one of these forms, a fact that stands under some keys of
  the reference must not stand only under others of them (`status` and `code` swapped). Keys that
  the reference does not have are not judged.

Where in doubt a fact counts as stated. That a value is given in another role in prose ("the
metrics are on port 9443") no look-up can tell.
"""

import functools
import itertools
import json
import re
from collections.abc import Iterator, Sequence

from compression_eval.facts.markers import ValueMarkers, last
from compression_eval.fixtures.banks import ExpectedFact, Probe
from compression_eval.text.matching import Text, normalise
from compression_eval.text.notations import canonical

MAX_CLAUSES = 5_000
"""In an answer of more clauses no denial is looked for."""

MAX_PLACES = 1_000
"""Occurrences in a clause that are examined for a denial."""

MAX_CELLS = 1_000
"""In an answer of more values no key is looked at."""

MAX_CELL = 60
"""A longer value of a table or list is prose, which need not stay in its place, in characters."""

_CLAUSE_END = re.compile(r"([!?;。！？；，、（）]|[.,:)](?=\s|$)|\(| [-–—] |\n)")
"""Boundaries of a sign's reach."""

_LINKS = re.compile(
    r"\b(?:and|as|because|but|if|just|now|only|or|since|so|than|that|unless|until|when|which|while)\b"
)
"""Words behind which a sign before them does not reach ("not only", "not run because")."""

_CLOSED = re.compile(r"\s*(?:$|any ?more|any longer|yet)")

_NEVER = re.compile(
    r"\bnever (?!(?:exceed|pass|drop|fall|ris|grow|reach)\w*\b)"
    r"(?:\w+(?:ed|[^s\W]s)|was|were|had|got|ran|went|made|took|came|gave)\b"
)
"""What never happened or happens, beside which ``never`` forbids ("never touch", about what is
forbidden) or sets a limit ("never exceeds")."""

_PAST_AFTER = re.compile(
    r"until\b.{1,60}\bnow\b|had been (?:considered|discussed|planned|proposed|tried)\b"
    r"|(?:is|was) (?:closed as )?a duplicate\b"
)
"""Said right after a value that no longer holds, or never did, in words with something between."""

_NOT_ONLY = re.compile("不(?=[只仅光])")
"""In Chinese a fact that begins with "only" is denied by the character before it."""

_SIGNS_IN_CODE = re.compile("|".join(each.pattern for each in (_NEVER, _PAST_AFTER, _NOT_ONLY)))

_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_NAMED = re.compile(
    r"[\s>*+•-]*(?:\d+[.)]\s)?[*_`\"']{0,4}([\w./ -]{1,60}?)[*_`\"']{0,4}\s*[:=]\s*(.+)"
)

Key = tuple[str, ...]
Cells = list[tuple[Key, str]]
"""Values with the keys under which they stand, outermost first; names alone stand under none."""


def stated_facts(probe: Probe, answer: str, markers: ValueMarkers) -> list[bool | None]:
    """Return for each expected fact of a probe, in order, whether an answer states it.

    None for a derived one, of which no look-up can tell.

    Args:
        probe: The question with its ground truth.
        answer: What the model said.
        markers: The signs of denial in the answer's language.
    """
    denials = _Denials(answer, markers)
    reference = _Denials(probe.reference_answer, markers)
    # What to do next is described by what is missing so far.
    denial_is_right = probe.type == "continuation" or denials.signs.asked(probe.question)
    given_cells, right_cells = _cells(answer), _cells(probe.reference_answer)

    def stated(fact: ExpectedFact) -> bool:
        forms = fact.forms
        if not denials.whole.has_any(forms) or _is_elsewhere(fact, given_cells, right_cells):
            return False
        return (
            denial_is_right
            or any(map(denials.signs.any_in, forms))
            or not denials.deny(forms)
            or (reference.whole.has_any(forms) and reference.deny(forms))
        )

    return [None if fact.derived else stated(fact) for fact in probe.expected_facts]


class _Denials:
    """A text, and what its clauses deny."""

    def __init__(self, text: str, markers: ValueMarkers) -> None:
        self.whole = Text(text)
        self.signs = _signs(markers)
        self._pieces = _CLAUSE_END.split(text, maxsplit=MAX_CLAUSES)
        looked_at = len(self._pieces) <= 2 * MAX_CLAUSES and self.signs.any_in(text)
        self._signed = {
            number: Text(self._pieces[number])
            for number in range(0, len(self._pieces), 2)
            if looked_at and self.signs.any_in(self._pieces[number])
        }

    def deny(self, forms: Sequence[str]) -> bool:
        """Return whether every occurrence of the forms in the text is denied."""
        denying = {number for number, text in self._signed.items() if self._denies(text, forms)}
        if not denying:
            return False
        left = (piece for number, piece in enumerate(self._pieces) if number not in denying)
        return not Text("".join(left)).has_any(forms)

    def _denies(self, clause: Text, forms: Sequence[str]) -> bool:
        # Not every occurrence counts: a base name may lie below another folder.
        if not clause.has_any(forms):
            return False
        places = list(itertools.islice(clause.places(forms), MAX_PLACES))
        return bool(places) and all(self.signs.deny(*place) for place in places)


class _Signs:
    """Signs of denial in one language, compiled for both notations."""

    def __init__(self, markers: ValueMarkers) -> None:
        def pattern(*phrases: str) -> re.Pattern[str]:
            spelled = {normalise(phrase) for phrase in phrases}
            return markers.pattern(spelled | set(map(canonical, spelled)), joining="a-z0-9-")

        self._gap = markers.window_before // 2
        self._before = pattern(*markers.denied_before)
        self._beside = pattern(*markers.denied_beside)
        self._from = pattern(*markers.denied_from)
        self._to = pattern(*markers.denied_to)
        self._after = pattern(*markers.denied_after)
        self._after_closing = pattern(*markers.denied_after_closing)
        signs = [
            *(*markers.denied_before, *markers.denied_beside, *markers.denied_from),
            *(*markers.denied_after, *markers.denied_after_closing),
        ]
        self._any = pattern(*signs, "->")
        self._asked = pattern(*signs, *markers.past_before, *markers.denied_asked)
        self._current = pattern(*markers.current_before, *markers.chained_before)

    def any_in(self, text: str) -> bool:
        """Return whether a text has a sign at all."""
        plain = normalise(text)
        return bool(self._any.search(plain) or _SIGNS_IN_CODE.search(plain))

    def asked(self, question: str) -> bool:
        """Return whether a question asks for what is past, or does not hold."""
        return self._asked.search(normalise(question)) is not None

    def deny(self, clause: str, start: int, end: int) -> bool:
        """Return whether a sign stands close to ``clause[start:end]``."""
        before = clause[max(0, start - 2 * self._gap) : start].rstrip(" '")
        beside = last(self._beside, before)
        if (beside and beside.end() == len(before)) or _NOT_ONLY.match(clause, max(start - 1, 0)):
            return True
        never = last(_NEVER, before)
        never_near = never and never.end() >= len(before) - self._gap
        if never and never_near and not _LINKS.search(before, never.end()):
            return True
        sign = last(self._before, before)
        # The "not" of "do not" is no sign of its own.
        within = sign and beside and beside.start() <= sign.start() and sign.end() <= beside.end()
        if sign and not within and sign.end() >= len(before) - self._gap:
            between = before[sign.end() :]
            if not (self._current.search(between) or _LINKS.search(between)):
                return True
        after = clause[end : end + 2 * self._gap].lstrip(" '")
        changed = last(self._from, before)
        if changed and changed.end() == len(before) and self._to.match(after):
            return True
        if after.startswith("->"):  # a change of values, but no flow from one thing to the next
            return any(map(str.isdigit, clause[start:end])) and any(map(str.isdigit, after))
        closing = self._after_closing.match(after)
        return bool(
            self._after.match(after)
            or _PAST_AFTER.match(after)
            or (closing and _CLOSED.match(after, closing.end()))
        )


@functools.lru_cache(maxsize=8)
def _signs(markers: ValueMarkers) -> _Signs:
    return _Signs(markers)


def _is_elsewhere(fact: ExpectedFact, cells: Cells, right: Cells) -> bool:
    """Return whether an answer gives a fact only under keys of other values of the reference."""
    right_keys = _keys_of(fact, right) if cells else set()
    if not right_keys:
        return False
    keys = _keys_of(fact, cells)
    return bool(keys) and keys.isdisjoint(right_keys) and keys <= {key for key, _ in right}


def _keys_of(fact: ExpectedFact, cells: Cells) -> set[Key]:
    return {
        key
        for key, value in cells
        if Text(value).has_any(fact.forms)
        or (key and Text(f"{key[-1]}: {value}").has_any(fact.forms))
    }


def _cells(text: str) -> Cells:
    """Return the values of JSON, of a table or of `name: value` lines; nothing of other texts."""
    cells = list(itertools.islice(_read_cells(text), MAX_CELLS + 1))
    return cells if len(cells) <= MAX_CELLS else []


def _read_cells(text: str) -> Iterator[tuple[Key, str]]:
    start = min((at for mark in "{[" if (at := text.find(mark)) >= 0), default=-1)
    if start >= 0:
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(value, dict) or (isinstance(value, list) and value):
                return _leaves(value, ())
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number and "|" in line and _RULE.fullmatch(line):
            return _table(lines[number - 1], lines[number + 1 :])
    return _named(lines)


def _leaves(value: object, key: Key) -> Iterator[tuple[Key, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*key, _name(str(name))))
    elif isinstance(value, list):
        for item in value:
            # An object of a list is a row: its first value names it.
            row = list(item.values()) if isinstance(item, dict) else []
            named = bool(row) and isinstance(row[0], str | int | float)
            yield from _leaves(item, (*key, _name(str(row[0]))) if named else key)
    else:
        yield key, json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value


def _table(head: str, rows: Sequence[str]) -> Iterator[tuple[Key, str]]:
    heads = [_name(cell) for cell in _row(head)]
    for row in rows:
        if "|" not in row:
            return
        first, *others = _row(row)
        yield (), first
        for name, value in zip(heads[1:], others, strict=False):
            if len(value) <= MAX_CELL:
                yield ((_name(first),) if len(heads) == 2 else (_name(first), name)), value


def _row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _named(lines: Sequence[str]) -> Iterator[tuple[Key, str]]:
    matches = [match for line in lines if (match := _NAMED.fullmatch(line[:200]))]
    if len(matches) < 2:
        return
    for match in matches:
        yield (), match[1]
        if len(match[2]) <= MAX_CELL:
            yield (_name(match[1]),), match[2]


def _name(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", normalise(text)).strip(" '")
