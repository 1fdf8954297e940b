"""What a question asks about: its terms, its parts, and the kind of thing it wants."""

import re
from dataclasses import dataclass

from compression_eval.offline import lexicon
from compression_eval.offline.tokens import terms

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
_WORD = re.compile(r"(?<![\w.-])[A-Za-z']+(?![\w-]|\.\w)")
_MOST_PARTS = 6
_FEWEST_TERMS = 2


@dataclass(frozen=True)
class Query:
    """A question or a part of one.

    Attributes:
        text: As it was asked.
        terms: Search terms without words that carry no content; repeated ones weigh more.
        cues: Names of the lexicon's cues that it shows.
        ordinals: (position, terms) of things counted in it: "the third lint run" is 2 with the
            terms of "lint run"; -1 is the last.
    """

    text: str
    terms: tuple[str, ...]
    cues: frozenset[str]
    ordinals: tuple[tuple[int, frozenset[str]], ...] = ()


def content_terms(text: str) -> list[str]:
    """Return the terms of a text without words that carry no content."""
    ignored = lexicon.ignored()
    kept = _WORD.sub(lambda word: _keep(word.group(), ignored.words), text)
    found = terms(ignored.phrases.sub(" ", kept))
    return [term for term in found if not ignored.characters.issuperset(term)]


def _keep(word: str, ignored: frozenset[str]) -> str:
    return " " if word.casefold() in ignored else word


def analyse(question: str) -> tuple[Query, list[Query]]:
    """Return the whole question as a query, and its parts where it asks several things.

    A part's query holds its own terms twice and the whole question's once: "and why?" has no
    terms of its own.
    """
    whole_terms = content_terms(question)
    whole = Query(question, tuple(whole_terms), cues_of(question), ordinals_of(question))
    pieces = [piece.strip() for piece in _PARTS.split(question) if piece and piece.strip()]
    parts = []
    for piece in pieces[:_MOST_PARTS] if len(pieces) > 1 else []:
        own = content_terms(piece)
        cues = cues_of(piece)
        if len(own) < _FEWEST_TERMS and not cues:
            continue
        parts.append(Query(piece, (*own, *own, *whole_terms), cues, ordinals_of(piece)))
    return whole, parts


def cues_of(text: str) -> frozenset[str]:
    """Return the names of the cues that a text shows."""
    return frozenset(name for name in lexicon.cue_names() if lexicon.cue(name).search(text))


def ordinals_of(text: str) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return the counted things of a text, each with one and with two of its words."""
    result = []
    for match in _ORDINAL.finditer(text):
        position, phrase = [group for group in match.groups() if group][:2]
        at = _POSITIONS[position.casefold()]
        words = phrase.split()
        for count in range(len(words), 0, -1):
            wanted = frozenset(content_terms(" ".join(words[:count])))
            if wanted:
                result.append((at, wanted))
    return tuple(result)
