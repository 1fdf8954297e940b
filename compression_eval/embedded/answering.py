"""Answer a question with the best matching lines of a conversation, in the requested form."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from compression_eval.embedded.conversation import (
    Action,
    FileAction,
    Utterance,
    beginning,
    by_action,
    cut,
    file_actions,
)
from compression_eval.embedded.language import estimate_tokens, is_wide, phrase
from compression_eval.embedded.retrieval import Index, Query, analyse, cues_of
from compression_eval.fixtures.banks import FormatKind, RequestedFormat

MAX_ANSWER_TOKENS = 300
"""Tokens of extracts in an answer."""

_MAX_SOURCES = 24
"""Conversations whose indices are kept: those of a run's current states."""
_MIN_SHARE = 0.2
MIN_SURE_SHARE = 0.6
"""Share of a question's terms that must occur among the extracts for them to be an answer; the
second where they are of a system prompt, or where more could be fetched."""
_MAX_CANDIDATES = 60
_TOO_ALIKE = 0.75
_SAME_STATEMENT = 0.7
_MAX_FILES = 14
_ACTIONS: dict[str, tuple[Action, ...]] = {
    "created": ("created",),
    "modified": ("modified",),
    "deleted": ("deleted", "renamed"),
    "read": ("read",),
}
"""Kinds of file operations by the cues that ask for them."""
_OPENERS = ("{", ":", "(", "[", "：", "=")
_INTRODUCED = 3

_FORMS: tuple[tuple[FormatKind, re.Pattern[str]], ...] = (
    ("json", re.compile(r"\bJSON\b", re.IGNORECASE)),
    ("table", re.compile(r"\btable\b|表格|テーブル|(?<=の)表|表で|表形式", re.IGNORECASE)),
    ("numbered", re.compile(r"\bnumbered\b|编号|有序列表|番号付き|番号つき", re.IGNORECASE)),
    (
        "bullets",
        re.compile(r"\bbullet(?:s|ed)?\b|项目符号|无序列表|要点列表|箇条書き", re.IGNORECASE),
    ),
    (
        "comma_list",
        re.compile(r"\bcomma|逗号|顿号分隔|カンマ|コンマ|読点区切り", re.IGNORECASE),
    ),
    (
        "single_line",
        re.compile(
            r"\b(?:one|single)[ -](?:line|sentence)\b|一行|单行|一句话|1 ?行|一文で|1 ?文で",
            re.IGNORECASE,
        ),
    ),
)
_DATA_ABOUT = re.compile(r"\b(?:in|from|of|the) the (?:json|table)\b|\.json\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\bas (?:a |an )?|\bin (?:a |an )?|\bformat|\breply|\banswer|\breturn|\bgive|\bwith "
    r"|格式|回答|形式|输出|返回|用|以|答え|返し|出力|示し",
    re.IGNORECASE,
)
_KEYS_AFTER = re.compile(
    r"(?:keys?|fields?|columns?|键|字段|列|キー|フィールド|項目)[^\n\"'`“「『]{0,24}(.+)", re.DOTALL
)
_QUOTED = re.compile(r"[`\"'“「『]([^`\"'”」』]{1,40})[`\"'”」』]")
_BARE_KEYS = re.compile(
    r"(?:keys?|fields?|columns?|键|字段|列|キー|フィールド)(?: named| called)?[:：]?\s*"
    r"(?:は|为|是)?\s*((?:[\w-]+(?:\s*(?:,|、|，|and|和|与|と)\s*)+)*[\w-]+)",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*(?:,|、|，|\band\b|和|与|と)\s*")
_NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "二": 2,
}  # fmt: skip
_ITEMS = re.compile(
    r"(?:exactly )?\b(\d{1,2}|two|three|four|five|six|seven|eight)\b"
    r" (?:\w+ )?(?:bullets?|items?|points?|lines)"
    r"|([两二三四五六]|\d{1,2}) ?(?:条|项|点|项目|つ|点の|項目)",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"`([^`]{2,80})`|([\w.-]*/[\w./-]+|\w+[._]\w[\w.]*(?:\(\))?|\w+\(\)|[a-z]+[A-Z]\w+|\d[\d.,:]*\w*)"
)
_MAX_CELL = 160
_MAX_ROWS = 6
_MAX_LISTED = 16


class Answer(NamedTuple):
    """A reply to a question."""

    text: str
    known: bool
    """Whether anything in the conversation fits the question."""


@dataclass(frozen=True)
class _Source:
    """A conversation prepared for questions."""

    index: Index
    files: list[FileAction]


class Answerer:
    """Answers questions and keeps the indices of the last conversations."""

    def __init__(self) -> None:
        self._sources: OrderedDict[bytes, _Source] = OrderedDict()

    def answer(
        self, history: list[Utterance], question: str, min_share: float = _MIN_SHARE
    ) -> Answer:
        """Return an answer made of extracts, in the requested form.

        Args:
            history: The conversation.
            question: What is asked about it.
            min_share: Share of the question's terms that must occur among the extracts for them
                to be an answer.
        """
        form = requested(question)
        whole, parts = analyse(question)
        source = self._source(history)
        index = source.index
        extracts = _select(index, whole, parts, MAX_ANSWER_TOKENS)
        listing = _file_listing(source.files, whole)
        if not listing and not _is_answer(index, whole, extracts, min_share):
            unknown = [phrase("unknown", question)]
            return Answer(_rendered(unknown, form, lambda _key: []), known=False)
        texts = [index.segments[at].text for at in extracts]

        def about(key: str) -> list[str]:
            asked = _asked_files(source.files, cues_of(key)) if "files" in whole.cues else {}
            if paths := [path for paths in asked.values() for path in paths]:
                return paths
            part = analyse(f"{key} {key} {question}")[0]
            fitting = _select(index, part, [], MAX_ANSWER_TOKENS // 3)
            return [index.segments[at].text for at in fitting]

        if listing and form is not None and form.kind == "comma_list":
            texts = []
        return Answer(_rendered(listing + texts, form, about), known=True)

    def _source(self, history: list[Utterance]) -> _Source:
        state = blake2b(digest_size=16)
        for utterance in history:
            state.update(repr((utterance.role, utterance.text, utterance.calls)).encode())
        key = state.digest()
        source = self._sources.pop(key, None) or _Source(Index(cut(history)), file_actions(history))
        self._sources[key] = source
        while len(self._sources) > _MAX_SOURCES:
            self._sources.popitem(last=False)
        return source


def _select(index: Index, whole: Query, parts: list[Query], budget: int) -> list[int]:
    """Return the positions of the answer's segments, best first, within a token budget.

    The parts of a question take turns, so that none uses up the budget.
    """
    rankings = [_best(index, query) for query in (whole, *parts)]
    chosen: list[int] = []
    left = budget
    for rank in range(_MAX_CANDIDATES):
        for ranking in rankings:
            for at in _block(index, ranking[rank]) if rank < len(ranking) else ():
                cost = estimate_tokens(index.segments[at].text) + 1
                if at not in chosen and cost <= left and not _repeats(index, at, chosen):
                    chosen.append(at)
                    left -= cost
        if left < budget // 20:
            break
    return chosen if "earliest" in whole.cues else _current(index, chosen, set(whole.terms))


def _best(index: Index, query: Query) -> list[int]:
    """Return the positions with the highest scores, ties in order, each text once."""
    scores = index.scores(query)
    result: dict[str, int] = {}
    for at in np.argsort(-scores, kind="stable"):
        if scores[at] <= 0 or len(result) == _MAX_CANDIDATES:
            break
        result.setdefault(index.segments[at].text, int(at))
    return list(result.values())


def _block(index: Index, at: int) -> list[int]:
    """Return a segment, followed by what it introduces if it ends like an introduction."""
    if not index.segments[at].text.endswith(_OPENERS):
        return [at]
    message = index.segments[at].message
    following = range(at + 1, min(at + 1 + _INTRODUCED, len(index.segments)))
    return [at, *(other for other in following if index.segments[other].message == message)]


def _repeats(index: Index, at: int, chosen: list[int]) -> bool:
    own = index.terms_of(at)
    others = (index.terms_of(other) for other in chosen)
    return any(len(own & each) > _TOO_ALIKE * max(len(own | each), 1) for each in others)


def _current(index: Index, chosen: list[int], asked: set[str]) -> list[int]:
    """Drop statements that a later one repeats with another number, which is the newer value.

    Lines of results are kept, since logs and tables have many that differ only in numbers; so is a
    line with a requested number.
    """
    split: dict[int, tuple[set[str], set[str]]] = {}
    for at in chosen:
        terms = index.terms_of(at)
        numbers = {term for term in terms if any(map(str.isdigit, term))}
        split[at] = terms - numbers, numbers
    statements = [
        at for at in chosen if index.segments[at].kind != "returned" and len(split[at][1]) == 1
    ]

    def outdated(at: int) -> bool:
        words, numbers = split[at]
        return any(
            index.segments[other].message > index.segments[at].message
            and split[other][1] != numbers
            and len(words & split[other][0]) >= _SAME_STATEMENT * len(words | split[other][0])
            for other in statements
        )

    return [at for at in chosen if at not in statements or split[at][1] & asked or not outdated(at)]


def _is_answer(index: Index, whole: Query, extracts: list[int], min_share: float) -> bool:
    """Return whether extracts have enough in common with a question to be an answer.

    A system prompt alone shares words with any question about coding, so more is required.
    """

    def size(terms: set[str]) -> float:  # a pair of wide characters is half a word
        return sum(0.5 if is_wide(term) else 1.0 for term in terms)

    asked = set(whole.terms)
    held = {term for at in extracts for term in index.terms_of(at)}
    alone = all(index.segments[at].role == "system" for at in extracts)
    share = max(MIN_SURE_SHARE, min_share) if alone else min_share
    common = size(asked & held)
    return bool(extracts) and common > 0 and common >= share * size(asked)


def _file_listing(actions: list[FileAction], question: Query) -> list[str]:
    """Return one line per kind of file operation that the question asks about."""
    if "files" not in question.cues:
        return []
    colon, comma = ("：", "、") if is_wide(question.text) else (": ", ", ")
    return [
        f"{phrase(action, question.text)}{colon}{comma.join(paths[-_MAX_FILES:])}"
        for action, paths in _asked_files(actions, question.cues).items()
    ]


def _asked_files(actions: list[FileAction], cues: frozenset[str]) -> dict[Action, list[str]]:
    """Return the paths of the kinds of file operation that cues name, without empty kinds."""
    done = by_action(actions)
    asked = [name for cue, names in _ACTIONS.items() if cue in cues for name in names]
    return {name: done[name] for name in asked if done.get(name)}


def requested(question: str) -> RequestedFormat | None:
    """Return the form that a question asks for; None if it asks for no known one."""
    for kind, pattern in _FORMS:
        match = pattern.search(question)
        if match and _is_request(question, match):
            keys = _keys(question) if kind in ("json", "table") else []
            return RequestedFormat(kind=kind, keys=keys, items=_items(question))
    return None


def _is_request(question: str, match: re.Match[str]) -> bool:
    """Distinguish "answer as a table" from "which table did the migration change"."""
    if _DATA_ABOUT.search(question[max(0, match.start() - 8) : match.end()]):
        return False
    around = question[max(0, match.start() - 60) : match.end() + 30]
    return _ASKED.search(around) is not None


def _keys(question: str) -> list[str]:
    after = _KEYS_AFTER.search(question)
    if quoted := _QUOTED.findall(after[1] if after else question):
        return list(dict.fromkeys(quoted))
    bare = _BARE_KEYS.search(question)
    return [key for key in _SEPARATOR.split(bare[1]) if key] if bare else []


def _items(question: str) -> int | None:
    match = _ITEMS.search(question)
    if match is None:
        return None
    text = (match[1] or match[2]).casefold()
    return _NUMBERS.get(text) or (int(text) if text.isdigit() and int(text) else None)


def _rendered(
    extracts: list[str], form: RequestedFormat | None, about: Callable[[str], list[str]]
) -> str:
    """Put extracts into a form.

    Args:
        extracts: Lines of the answer, best first.
        form: The form asked for; None for plain lines.
        about: Gives the lines that fit a key or a column head.
    """
    if form is None:
        return "\n".join(extracts)
    if form.kind == "json":
        keys = form.keys or ["answer"]
        values = {key: about(key) if len(keys) > 1 else extracts for key in keys}
        chosen = {key: value or extracts[:1] for key, value in values.items()}
        data = {key: each[0] if len(each) == 1 else each for key, each in chosen.items()}
        return json.dumps(data, ensure_ascii=False)
    if form.kind == "table":
        return _table(extracts, form.keys or ["item", "detail"])
    if form.kind == "single_line":
        return " | ".join(" ".join(text.split()) for text in extracts)
    if form.kind == "comma_list":
        return ", ".join(_telling(extracts)[: form.items or _MAX_LISTED])
    items = extracts
    if form.items:  # distributed over the requested number
        items = [" | ".join(extracts[at :: form.items]) or "-" for at in range(form.items)]
    numbered = form.kind == "numbered"
    return "\n".join(
        f"{number}. {text}" if numbered else f"- {text}" for number, text in enumerate(items, 1)
    )


def _telling(extracts: list[str]) -> list[str]:
    """Return the names, paths and numbers of the extracts; the extracts if there are none."""
    pairs = [pair for text in extracts for pair in _TELLING.findall(text)]
    names = [(quoted or bare).strip(",. ").replace(",", "") for quoted, bare in pairs]
    return list(dict.fromkeys(filter(None, names))) or [text.replace(",", " ") for text in extracts]


def _table(extracts: list[str], heads: Sequence[str]) -> str:
    rows = [heads, ["---"] * len(heads)]
    for text in extracts[:_MAX_ROWS]:
        names = _telling([text])[: len(heads) - 1]
        empty = [""] * (len(heads) - 1 - len(names))
        rows.append([*names, *empty, beginning(text, _MAX_CELL)])
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows
    )
