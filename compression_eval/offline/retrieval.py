"""BM25 over the lines of a conversation, with its neighbourhood and its place taken in.

A line of a log or a listing says little by itself: what it is about stands in the lines around
it, in the call that produced it and in what the assistant said before that call. So three indices
are asked (the line, its message, what led to the message) and their scores added.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compression_eval.offline import lexicon
from compression_eval.offline.question import Query
from compression_eval.offline.segments import Conversation, Segment
from compression_eval.offline.tokens import terms

Floats = NDArray[np.float32]

_NEIGHBOUR = 0.35
_FURTHER = 0.15
_MESSAGE = 0.25
_HEADER = 0.45
_SOUGHT = 0.22
_KIND = 0.18
_LATER = 0.12
_COUNTED = 2.0
"""Weights, chosen on conversations that are not shipped with the project."""

_ROLE = {"user": 1.3, "assistant": 1.1, "tool": 1.0, "system": 0.6}
_CALLED = 0.9

_KINDS = {
    "number": re.compile(r"\d"),
    "files": re.compile(r"[\w.-]+/[\w.-]+|\b[\w-]+\.[a-z]{1,5}\b"),
    "identifier": re.compile(r"\w_\w|[a-z][A-Z]|\w\(\)|`\w+`"),
}
"""What answers look like to questions with these cues."""


class _Field:
    """One BM25 index over a list of texts."""

    def __init__(self, texts: Sequence[str], *, k1: float, b: float) -> None:
        self.documents = [terms(text) for text in texts]
        self._size = len(self.documents)
        self._index: Any = None
        if any(self.documents):
            self._index = _build(self.documents, k1=k1, b=b)

    def scores(self, query: Sequence[str]) -> Floats:
        """Return one BM25 score per text; all 0 where nothing matches."""
        known = [] if self._index is None else self._index.get_tokens_ids(list(query))
        if not known:
            return np.zeros(self._size, dtype=np.float32)
        found: Floats = self._index.get_scores_from_ids(known)
        return found


def _build(documents: list[list[str]], *, k1: float, b: float) -> Any:
    import bm25s

    numbers: dict[str, int] = {}
    ids = [[numbers.setdefault(term, len(numbers)) for term in document] for document in documents]
    index = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy", csc_backend="numpy")
    index.index((ids, numbers), create_empty_token=False, show_progress=False)
    return index


class Index:
    """Everything about one conversation that does not depend on the question."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.segments: tuple[Segment, ...] = conversation.segments
        size = len(conversation.headers)
        bodies: list[list[str]] = [[] for _ in range(size)]
        for segment in self.segments:
            bodies[segment.message].append(segment.text)
        self._lines = _Field([f"{s.text} {s.title}" for s in self.segments], k1=1.2, b=0.35)
        self._messages = _Field(["\n".join(body) for body in bodies], k1=1.2, b=0.6)
        self._headers = _Field(conversation.headers, k1=1.2, b=0.5)
        self._message_of = np.array([s.message for s in self.segments], dtype=np.intp)
        self._prior = self._priors(size)
        self._found: dict[str, Floats] = {}

    def _priors(self, size: int) -> Floats:
        values = [
            _ROLE.get(s.role, 1.0)
            * (_CALLED if s.kind == "called" else 1.0)
            * (1 + _LATER * s.message / max(size, 1))
            for s in self.segments
        ]
        return np.array(values, dtype=np.float32)

    def _feature(self, name: str) -> Floats | None:
        """Return for each segment 1 where it holds what a cue asks for; None if unknown."""
        if name not in self._found:
            if name == "command":
                found = [s.kind == "called" and s.line == 0 for s in self.segments]
            elif pattern := _KINDS.get(name):
                found = [pattern.search(s.text) is not None for s in self.segments]
            elif name in lexicon.sought_names():
                pattern = lexicon.sought(name)
                found = [pattern.search(s.text) is not None for s in self.segments]
            else:
                return None
            self._found[name] = np.array(found, dtype=np.float32)
        return self._found[name]

    def scores(self, query: Query) -> Floats:
        """Return one rank value per segment for a query; 0 where nothing is in common."""
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
                factor *= 1 + (_SOUGHT if name in lexicon.sought_names() else _KIND) * feature
        place = self._message_of / max(len(self.conversation.headers), 1)
        if "earliest" in query.cues and "latest" not in query.cues:
            factor *= (1.25 - 0.5 * place).astype(np.float32)
        elif "latest" in query.cues:
            factor *= (0.85 + 0.35 * place).astype(np.float32)
        message = self._counted(query)
        if message is not None:
            factor[self._message_of == message] *= _COUNTED
        return (total * factor).astype(np.float32)

    def _counted(self, query: Query) -> int | None:
        """Return the message that "the third lint run" means: the result of such a call."""
        for position, wanted in query.ordinals:
            results = [at for at, found in self._result_terms if wanted <= found]
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
        """Return for each segment the scores of the four around it in the same message."""
        result = np.zeros_like(line)
        for step, weight in ((1, _NEIGHBOUR), (2, _FURTHER)):
            if len(line) <= step:
                break
            same = self._message_of[step:] == self._message_of[:-step]
            result[step:] += weight * np.where(same, line[:-step], 0)
            result[:-step] += weight * np.where(same, line[step:], 0)
        return result

    def terms_of(self, at: int) -> set[str]:
        """Return the terms of one segment."""
        return set(terms(self.segments[at].text))
