"""Rank the lines of a conversation for a question: BM25 with context and position.

A line of a log or listing says little by itself: its subject is in the lines around it, in the call
that produced it and in the assistant's text before that call. So the scores of three indices are
added: the line, its message, and the context of the message.
"""

import functools
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compression_eval.embedded.conversation import Conversation
from compression_eval.embedded.language import content_terms, names_of, words
from compression_eval.text.ranking import Bm25, terms

Floats = NDArray[np.float32]

_NEIGHBOURS = ((1, 0.35), (2, 0.15))
_MESSAGE = 0.25
_HEADER = 0.45
_SOUGHT = 0.22
_KIND = 0.18
_LATER = 0.12
_COUNTED = 2.0
"""Weights, tuned on conversations that are not shipped."""

_ROLE = {"user": 1.3, "assistant": 1.1, "tool": 1.0, "system": 0.6}
_CALLED = 0.9

_KINDS = {
    "number": re.compile(r"\d"),
    "files": re.compile(r"[\w.-]+/[\w.-]+|\b[\w-]+\.[a-z]{1,5}\b"),
    "identifier": re.compile(r"\w_\w|[a-z][A-Z]|\w\(\)|`\w+`"),
}
"""What answers look like to questions with these cues."""
_PARTS = re.compile(
    r"(?<=[?？。！；;])\s*|(?<=[.!])\s+|,\s+(?=(?:and|or|which|what|why|how)\b)"
    r"|\s+and\s+(?=(?:which|what|why|how|where|when|who|for what|at which|in which)\b)"
    r"|(?:，|、)(?=(?:又|并|以及|为什么|哪|什么|多少|どの|なぜ|何))|(?:以及|并且|そして|また、)"
)
_ORDINAL = re.compile(
    r"\b(first|second|third|fourth|fifth|last|final)\s+(\w+(?:\s+\w+)?)"
    r"|第([一二三四五1-5])次(?:的)?(\w{2,6})|([一二三四五1-5])(?:回|度|番)目の(\w{2,6})",
    re.IGNORECASE,
)
_POSITIONS = {
    "first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "final": -1,
    "一": 0, "二": 1, "三": 2, "四": 3, "五": 4,
    "1": 0, "2": 1, "3": 2, "4": 3, "5": 4,
}  # fmt: skip
_MAX_PARTS = 6
_MIN_TERMS = 2


@dataclass(frozen=True)
class Query:
    """A question or a part of one."""

    text: str
    """The original text."""
    terms: tuple[str, ...]
    """Content terms; repeated ones weigh more."""
    cues: frozenset[str]
    """Names of the lexicon's cues in it."""
    ordinals: tuple[tuple[int, frozenset[str]], ...] = ()
    """Things counted in it: "the third lint run" is 2 with the terms of "lint run"; -1 is last."""


def analyse(question: str) -> tuple[Query, list[Query]]:
    """Return the whole question as a query, and its parts if it asks several things.

    A part's query holds its own terms twice and the whole question's once: "and why?" has no
    terms of its own.
    """
    asked = content_terms(question)
    whole = Query(question, tuple(asked), cues_of(question), _ordinals(question))
    pieces = [piece.strip() for piece in _PARTS.split(question) if piece and piece.strip()]
    parts = []
    for piece in pieces[:_MAX_PARTS] if len(pieces) > 1 else []:
        own, cues = content_terms(piece), cues_of(piece)
        if len(own) >= _MIN_TERMS or cues:
            parts.append(Query(piece, (*own, *own, *asked), cues, _ordinals(piece)))
    return whole, parts


def cues_of(text: str) -> frozenset[str]:
    """Return the names of the cues in a text."""
    return frozenset(name for name in names_of("cues") if words("cues", name).search(text))


def _ordinals(text: str) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return the counted things in a text, each with one and with two of its words."""
    result = []
    for match in _ORDINAL.finditer(text):
        position, counted = [group for group in match.groups() if group][:2]
        named = counted.split()
        for count in range(len(named), 0, -1):
            if wanted := frozenset(content_terms(" ".join(named[:count]))):
                result.append((_POSITIONS[position.casefold()], wanted))
    return tuple(result)


class Index:
    """The part of the retrieval from one conversation that does not depend on the question."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.segments = conversation.segments
        size = len(conversation.headers)
        bodies: list[list[str]] = [[] for _ in range(size)]
        for segment in self.segments:
            bodies[segment.message].append(segment.text)
        self._lines = Bm25([f"{s.text} {s.title}" for s in self.segments], b=0.35)
        self._messages = Bm25(["\n".join(body) for body in bodies], b=0.6)
        self._headers = Bm25(conversation.headers, b=0.5)
        self._message_of = np.array([s.message for s in self.segments], dtype=np.intp)
        priors = [
            _ROLE.get(s.role, 1.0)
            * (_CALLED if s.kind == "called" else 1.0)
            * (1 + _LATER * s.message / max(size, 1))
            for s in self.segments
        ]
        self._prior = np.array(priors, dtype=np.float32)
        self._features: dict[str, Floats] = {}

    def scores(self, query: Query) -> Floats:
        """Return one score per segment for a query; 0 if they share nothing."""
        if not self.segments or not query.terms:
            return np.zeros(len(self.segments), dtype=np.float32)
        line = self._lines.scores(query.terms)
        total = line + self._around(line)
        total = total + _MESSAGE * self._messages.scores(query.terms)[self._message_of]
        total = total + _HEADER * self._headers.scores(query.terms)[self._message_of]
        factor = self._prior.copy()
        for name in query.cues:
            feature = self._feature(name)
            if feature is not None:
                factor *= 1 + (_SOUGHT if name in names_of("sought") else _KIND) * feature
        place = self._message_of / max(len(self.conversation.headers), 1)
        if "earliest" in query.cues and "latest" not in query.cues:
            factor *= (1.25 - 0.5 * place).astype(np.float32)
        elif "latest" in query.cues:
            factor *= (0.85 + 0.35 * place).astype(np.float32)
        message = self._counted(query)
        if message is not None:
            factor[self._message_of == message] *= _COUNTED
        return (total * factor).astype(np.float32)

    def _feature(self, name: str) -> Floats | None:
        """Return for each segment 1 if it has what a cue asks for; None for an unknown cue."""
        if name not in self._features:
            pattern = _KINDS.get(name)
            if pattern is None and name in names_of("sought"):
                pattern = words("sought", name)
            if name == "command":
                held = [s.kind == "called" and s.line == 0 for s in self.segments]
            elif pattern is None:
                return None
            else:
                held = [pattern.search(s.text) is not None for s in self.segments]
            self._features[name] = np.array(held, dtype=np.float32)
        return self._features[name]

    def _counted(self, query: Query) -> int | None:
        """Return the message that "the third lint run" means: the result of such a call."""
        for position, wanted in query.ordinals:
            results = [at for at, call_terms in self._result_terms if wanted <= call_terms]
            if len(results) > 1 and -len(results) <= position < len(results):
                return results[position]
        return None

    @functools.cached_property
    def _result_terms(self) -> list[tuple[int, set[str]]]:
        """The messages that are results of calls, with the terms of the call."""
        results = {s.message for s in self.segments if s.kind == "returned"}
        calls = self.conversation.calls
        return [(at, set(terms(calls[at]))) for at in sorted(results) if calls[at]]

    def _around(self, line: Floats) -> Floats:
        """Return for each segment the scores of its four neighbours in the same message."""
        result = np.zeros_like(line)
        for step, weight in _NEIGHBOURS:
            if len(line) <= step:
                break
            same = self._message_of[step:] == self._message_of[:-step]
            result[step:] += weight * np.where(same, line[:-step], 0)
            result[:-step] += weight * np.where(same, line[step:], 0)
        return result

    def terms_of(self, at: int) -> set[str]:
        """Return the terms of one segment."""
        return set(terms(self.segments[at].text))
