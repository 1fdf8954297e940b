"""Cutting a conversation into the lines that answers and summaries are made of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compression_eval.offline.reading import Call, Utterance, leaves

Kind = Literal["said", "called", "returned"]

LONGEST = 320
"""Characters of a segment; longer lines are cut at sentence ends, else between words."""

_MOST_PER_MESSAGE = 4_000
"""Segments kept of one message, from both its ends: a bound on the work for a huge output."""

_HEADER_CHARACTERS = 240
_LONGEST_ARGUMENT = 120
_LINE_NUMBER = re.compile(r"^\s*\d+(?:\u2192|\t)")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_HAS_CONTENT = re.compile(r"\w")
_PARTED = re.compile(r"[A-Za-z0-9_]{2}")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Segment:
    """One line of a conversation, and where it stands."""

    message: int
    """Position of the message among those that were cut."""
    role: str
    kind: Kind
    text: str
    """At most `LONGEST` characters, white space collapsed, line numbers of listings removed."""
    line: int
    """Number of the segment within its message, from 0."""
    title: str = ""
    """The heading that the line stands under, if it is Markdown."""


@dataclass(frozen=True)
class Conversation:
    """The segments of a conversation and, for each message, what led to it."""

    segments: tuple[Segment, ...]
    headers: tuple[str, ...]
    """Per message: what the assistant said and called before it, shortened."""
    calls: tuple[str, ...]
    """Per message: the signature of the call that it is the result of, or is; empty if none."""


def cut(utterances: list[Utterance]) -> Conversation:
    """Cut a conversation; results are matched to the calls before them in their order."""
    segments: list[Segment] = []
    headers: list[str] = []
    signatures: list[str] = []
    said, waiting = "", list[str]()
    for position, utterance in enumerate(utterances):
        segments.extend(_bounded(list(_segments(position, utterance))))
        if utterance.role == "tool":
            signature = waiting.pop(0) if waiting else ""
            headers.append(f"{said} {signature}"[: 2 * _HEADER_CHARACTERS])
            signatures.append(signature)
            continue
        own = [describe_call(call) for call in utterance.calls]
        if utterance.role != "assistant":
            said, waiting = "", []
        elif utterance.text.strip():
            said = _short(utterance.text)
        waiting.extend(own)
        headers.append(" ".join([said, *own])[: 4 * _HEADER_CHARACTERS])
        signatures.append(own[0] if own else "")
    return Conversation(tuple(segments), tuple(headers), tuple(signatures))


def describe_call(call: Call) -> str:
    """Return a call as one short line: its name, then its short argument values."""
    parts = [call.name]
    for _key, value in leaves(call.arguments):
        if len(value) <= _LONGEST_ARGUMENT and "\n" not in value:
            parts.append(value)
    return _short(" ".join(parts))


def _short(text: str) -> str:
    return beginning(_SPACES.sub(" ", text).strip(), _HEADER_CHARACTERS).strip()


def _bounded(segments: list[Segment]) -> list[Segment]:
    if len(segments) <= _MOST_PER_MESSAGE:
        return segments
    half = _MOST_PER_MESSAGE // 2
    return segments[:half] + segments[-half:]


def _segments(position: int, utterance: Utterance) -> Iterator[Segment]:
    kind: Kind = "returned" if utterance.role == "tool" else "said"
    line = 0
    for text, title in _lines(utterance.text, prose=kind == "said"):
        yield Segment(position, utterance.role, kind, text, line, title)
        line += 1
    for call in utterance.calls:
        signature = describe_call(call)
        yield Segment(position, utterance.role, "called", signature, line)
        line += 1
        for key, value in leaves(call.arguments):
            if value in signature:
                continue
            for text, _title in _lines(value, prose=False):
                yield Segment(position, utterance.role, "called", text, line, key)
                line += 1


def _lines(text: str, *, prose: bool) -> Iterator[tuple[str, str]]:
    """Yield (line, heading above it), long lines in pieces, lines without a word left out."""
    title = ""
    for raw in text.splitlines():
        line = _SPACES.sub(" ", _LINE_NUMBER.sub("", raw, count=1)).strip()
        if prose and line.startswith("#"):
            title = line.lstrip("# ")
        if not _HAS_CONTENT.search(line):
            continue
        for piece in _pieces(line, prose=prose):
            yield piece, title


def _pieces(line: str, *, prose: bool) -> Iterator[str]:
    """Split prose into sentences, and anything into pieces of bounded length."""
    parts = _SENTENCE_END.split(line) if prose or len(line) > LONGEST else [line]
    for part in parts:
        at = 0
        while at < len(part):
            piece = beginning(part[at : at + LONGEST + 1], LONGEST)
            at += len(piece)
            if _HAS_CONTENT.search(piece):
                yield piece.strip()


def beginning(text: str, length: int) -> str:
    """Return the start of a text, cut behind a space or else between two words.

    Part of an identifier would read as another one. A run without a boundary in its second half is
    cut anywhere.
    """
    if len(text) <= length:
        return text
    least = length // 2
    space = text.rfind(" ", least, length)
    if space > 0:
        return text[: space + 1]
    between = (at for at in range(length, least, -1) if not _PARTED.match(text, at - 1))
    return text[: next(between, length)]
