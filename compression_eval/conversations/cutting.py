"""Where an imported conversation is cut, for a corpus whose conversations all differ."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.cuts import boundaries
from compression_eval.fixtures.models import Fixture

EXPECTED = "auto, end, a number of messages, a share between 0 and 1, or tokens:N"


@dataclass(frozen=True)
class CutRule:
    """One ``--cut``."""

    kind: Literal["auto", "end", "messages", "share", "tokens"]
    amount: float = 0
    """Messages, share or tokens; nothing for the others."""

    def __str__(self) -> str:
        if self.kind in ("auto", "end"):
            return self.kind
        return f"tokens:{self.amount:.0f}" if self.kind == "tokens" else f"{self.amount:g}"


class Cuts(NamedTuple):
    """The cuts of a conversation, rising, and what has to be said about them."""

    cuts: list[int]
    notes: list[str]


def cut_rules(values: Sequence[str]) -> list[CutRule]:
    """Return what ``--cut`` asks for.

    Raises:
        DataError: One is not a cut.
    """
    parts = [part.strip() for value in values for part in value.split(",")]
    return [_rule(part) for part in parts] or [CutRule("auto")]


def _rule(text: str) -> CutRule:
    if text in ("auto", "end"):
        return CutRule("auto" if text == "auto" else "end")
    if found := re.fullmatch(r"tokens:([0-9]{1,12})", text):
        rule = CutRule("tokens", int(found[1]))
    elif re.fullmatch(r"[0-9]{1,9}", text):
        rule = CutRule("messages", int(text))
    elif re.fullmatch(r"0?\.[0-9]{1,12}", text):
        rule = CutRule("share", float(text))
    else:
        raise DataError(f"--cut: {shorten(text)} is not a cut; expected {EXPECTED}")
    if not rule.amount:
        raise DataError(f"--cut: {shorten(text)} leaves nothing to compress; expected {EXPECTED}")
    return rule


def find_cuts(fixture: Fixture, rules: Sequence[CutRule]) -> Cuts:
    """Return where a conversation is cut; every cut is a boundary with a user message before it.

    ``auto`` is where the agent itself compacted, but for tool results that it merely cleared, and
    the end if it never did. What lies between boundaries is moved back to the one before.
    """
    spoken = next(index for index, m in enumerate(fixture.messages) if m.role == "user")
    allowed = [boundary for boundary in boundaries(fixture) if boundary > spoken]
    notes: list[str] = []
    found: set[int] = set()
    for rule in rules:
        for wanted in _wanted(fixture, rule, allowed):
            before = [boundary for boundary in allowed if boundary <= wanted]
            if wanted > len(fixture.messages):
                notes.append(f"cut {rule}: the conversation is shorter")
            elif not before:
                notes.append(f"cut {rule}: nothing can be cut so early")
            else:
                found.add(before[-1])
                if before[-1] != wanted and rule.kind == "messages":
                    notes.append(f"cut {rule}: moved back to the boundary at {before[-1]}")
    return Cuts(sorted(found), notes)


def _wanted(fixture: Fixture, rule: CutRule, allowed: Sequence[int]) -> Iterator[int]:
    """Yield numbers of messages, on a boundary or not."""
    texts = (message.searchable() for message in fixture.messages)
    if rule.kind == "auto":
        recorded = [c.cut for c in fixture.recorded_compactions if c.kind != "clear"]
        yield from recorded or allowed[-1:]
    elif rule.kind == "end":
        yield allowed[-1]
    elif rule.kind == "messages":
        yield int(rule.amount)
    elif rule.kind == "share":
        sizes = [len(text) + 1 for text in texts]
        yield _fitting(sizes, rule.amount * sum(sizes))
    else:
        from compression_eval.fixtures.tokens import MESSAGE_OVERHEAD, text_counter

        sizes = [text_counter().count(text) + MESSAGE_OVERHEAD for text in texts]
        fits = _fitting(sizes, rule.amount)
        # As with messages: a conversation that never gets so long is not cut there.
        yield fits if fits < len(sizes) or sum(sizes) == rule.amount else len(sizes) + 1


def _fitting(sizes: Sequence[int], budget: float) -> int:
    """Return how many messages fit a budget."""
    return sum(total <= budget for total in accumulate(sizes))
