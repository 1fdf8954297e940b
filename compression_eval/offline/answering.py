"""Answering a question from a conversation with the lines of it that fit best."""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from compression_eval.offline import formats
from compression_eval.offline.artifacts import Action, FileAction, by_action, file_actions
from compression_eval.offline.phrases import phrase
from compression_eval.offline.question import Query, analyse, cues_of
from compression_eval.offline.reading import Utterance
from compression_eval.offline.retrieval import Floats, Index
from compression_eval.offline.segments import cut
from compression_eval.offline.tokens import estimate_tokens, is_wide

ANSWER_TOKENS = 300
"""Tokens of extracts in an answer."""

_KEPT_INDICES = 24
"""Conversations kept indexed: those of a run's current states."""

_LEAST_SHARE = 0.2
_LEAST_SHARE_OF_PROMPT = 0.6
"""Share of a question's terms that must occur among the extracts for them to be an answer."""

_CANDIDATES = 60
_TOO_ALIKE = 0.75
_SAME_STATEMENT = 0.7
_MOST_FILES = 14
_ACTIONS: dict[str, tuple[Action, ...]] = {
    "created": ("created",),
    "modified": ("modified",),
    "deleted": ("deleted", "renamed"),
    "read": ("read",),
}
_OPENERS = ("{", ":", "(", "[", "：", "=")
_INTRODUCED = 3


@dataclass(frozen=True)
class Source:
    """A conversation made ready for questions."""

    index: Index
    files: list[FileAction]


class Answerer:
    """Answers questions and keeps the indices of the last conversations."""

    def __init__(self) -> None:
        self._sources: OrderedDict[bytes, Source] = OrderedDict()

    def answer(self, history: list[Utterance], question: str) -> str:
        """Return an answer made of extracts, in the form that the question asks for."""
        wanted = formats.requested(question)
        whole, parts = analyse(question)
        source = self._source(history)
        extracts = select(source.index, whole, parts)
        listing = _file_listing(source.files, whole)
        if not listing and not _is_answer(source.index, whole, extracts):
            return formats.render([phrase("unknown", question)], wanted, lambda _key: [])
        texts = [source.index.segments[at].text for at in extracts]

        def about(key: str) -> list[str]:
            paths = _paths(source.files, key) if "files" in whole.cues else []
            if paths:
                return paths
            part = analyse(f"{key} {key} {question}")[0]
            found = select(source.index, part, [], tokens=ANSWER_TOKENS // 3)
            return [source.index.segments[at].text for at in found]

        if listing and wanted is not None and wanted.kind == "comma_list":
            texts = []
        return formats.render(listing + texts, wanted, about)

    def _source(self, history: list[Utterance]) -> Source:
        key = _digest(history)
        source = self._sources.pop(key, None)
        if source is None:
            source = Source(Index(cut(history)), file_actions(history))
        self._sources[key] = source
        while len(self._sources) > _KEPT_INDICES:
            self._sources.popitem(last=False)
        return source


def _digest(history: list[Utterance]) -> bytes:
    state = blake2b(digest_size=16)
    for utterance in history:
        state.update(repr((utterance.role, utterance.text, utterance.calls)).encode())
    return state.digest()


def select(
    index: Index, whole: Query, parts: list[Query], tokens: int = ANSWER_TOKENS
) -> list[int]:
    """Return the positions of the segments to answer with, best first, within a token budget.

    The parts of a question take turns, so that none uses up the budget.
    """
    rankings = []
    for query in [whole, *parts]:
        scores = index.scores(query)
        rankings.append(_best(index, scores))
    chosen: list[int] = []
    left = tokens
    for rank in range(_CANDIDATES):
        for ranking in rankings:
            if rank >= len(ranking):
                continue
            for at in _block(index, ranking[rank]):
                cost = estimate_tokens(index.segments[at].text) + 1
                if at in chosen or cost > left or _repeats(index, at, chosen):
                    continue
                chosen.append(at)
                left -= cost
        if left < tokens // 20:
            break
    return (
        chosen if "earliest" in whole.cues else _without_outdated(index, chosen, set(whole.terms))
    )


def _block(index: Index, at: int) -> list[int]:
    """Return a segment, followed by what it introduces if it ends as an introduction does."""
    if not index.segments[at].text.endswith(_OPENERS):
        return [at]
    message = index.segments[at].message
    following = range(at + 1, min(at + 1 + _INTRODUCED, len(index.segments)))
    return [at, *(other for other in following if index.segments[other].message == message)]


def _best(index: Index, scores: Floats) -> list[int]:
    """Return the positions of the highest scores, equal ones in their order, each text once."""
    result: dict[str, int] = {}
    for at in np.argsort(-scores, kind="stable"):
        if scores[at] <= 0 or len(result) == _CANDIDATES:
            break
        result.setdefault(index.segments[at].text, int(at))
    return list(result.values())


def _repeats(index: Index, at: int, chosen: list[int]) -> bool:
    own = index.terms_of(at)
    for other in chosen:
        theirs = index.terms_of(other)
        if len(own & theirs) > _TOO_ALIKE * max(len(own | theirs), 1):
            return True
    return False


def _without_outdated(index: Index, chosen: list[int], asked: set[str]) -> list[int]:
    """Leave out what a later statement repeats with one other number: that is the newer value.

    Lines of results are kept, as a log or table has many that differ in their numbers alone, and
    so is a line with a number that was asked for.
    """
    split = {at: _words_and_numbers(index, at) for at in chosen}

    def outdated(at: int) -> bool:
        words, numbers = split[at]
        if len(numbers) != 1 or numbers & asked or index.segments[at].kind == "returned":
            return False
        return any(
            index.segments[other].message > index.segments[at].message
            and index.segments[other].kind != "returned"
            and len(split[other][1]) == 1
            and split[other][1] != numbers
            and len(words & split[other][0]) >= _SAME_STATEMENT * len(words | split[other][0])
            for other in chosen
        )

    return [at for at in chosen if not outdated(at)]


def _words_and_numbers(index: Index, at: int) -> tuple[set[str], set[str]]:
    found = index.terms_of(at)
    numbers = {term for term in found if any(character.isdigit() for character in term)}
    return found - numbers, numbers


def _is_answer(index: Index, whole: Query, extracts: list[int]) -> bool:
    """Tell whether extracts have enough in common with a question to be an answer.

    A system prompt alone has words in common with any question about coding, so more is asked.
    """
    asked = set(whole.terms)
    found: set[str] = set()
    for at in extracts:
        found |= index.terms_of(at)
    alone = all(index.segments[at].role == "system" for at in extracts)
    share = _LEAST_SHARE_OF_PROMPT if alone else _LEAST_SHARE
    common = _words_in(asked & found)
    return bool(extracts) and common > 0 and common >= share * _words_in(asked)


def _words_in(query_terms: set[str]) -> float:
    """Return a number of words; a pair of Chinese or Japanese characters is half of one."""
    return sum(0.5 if is_wide(term) else 1.0 for term in query_terms)


def _file_listing(actions: list[FileAction], question: Query) -> list[str]:
    """Return one line per kind of file operation that the question asks about."""
    if "files" not in question.cues:
        return []
    wide = is_wide(question.text)
    return [
        f"{phrase(action, question.text)}{'：' if wide else ': '}"
        + ("、" if wide else ", ").join(paths[-_MOST_FILES:])
        for action, paths in _asked_actions(actions, question.cues).items()
    ]


def _paths(actions: list[FileAction], key: str) -> list[str]:
    """Return the paths that belong under a key such as ``modified``."""
    asked = _asked_actions(actions, cues_of(key))
    return [path for paths in asked.values() for path in paths]


def _asked_actions(actions: list[FileAction], cues: frozenset[str]) -> dict[Action, list[str]]:
    """Return the paths of those kinds of file operation that cues name, none empty."""
    found = by_action(actions)
    return {
        action: found[action]
        for cue, names in _ACTIONS.items()
        if cue in cues
        for action in names
        if found.get(action)
    }
