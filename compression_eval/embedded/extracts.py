"""Lines of a conversation: those that answer a question, and those that a summary keeps.

A conversation is cut into lines, prose into sentences. For an answer, BM25 ranks them by the words
of the question; a line's neighbours and its role count too, and the best ones are put into the form
that is asked for. Which files were touched is read from the tool calls. For a summary, the lines
are ranked by who said them and by how many names, paths and numbers they have.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from inspect_ai.model import ChatMessage, ChatMessageAssistant

from compression_eval.file_ops.calls import calls_of_messages
from compression_eval.file_ops.ledger import Status, inventory_of
from compression_eval.file_ops.tools import read_calls
from compression_eval.fixtures.banks import FormatKind
from compression_eval.fixtures.conversation import content_text
from compression_eval.fixtures.models import leaves
from compression_eval.text.ranking import CJK, Bm25, terms

_WIDE = re.compile(rf"[{CJK}\uac00-\ud7af\uff00-\uffef\u3000-\u303f]")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")
_PIECE = re.compile(r".{1,320}(?!\S)|.{1,320}")
"""At most 320 characters, up to a space where there is one."""
_TELLING = re.compile(r"[\w./-]*[\d_/][\w./-]*\w|\b[a-z]+[A-Z]\w+|\w+\.[a-z]{1,5}\b|`[^`]+`")
"""Names, paths and numbers, which nobody can guess."""
_COMMON = frozenset(
    terms(
        "a an the this that these those it its they them we our you your i my me is are was were "
        "be been do does did done has have had will would should can could may might must to of in "
        "on at by for from with about as into through and or but if then than so not no only just "
        "also both each all any some such own same other another more most many one two which what "
        "who when where why how whether give name list tell say said answer use used exact "
        "question session conversation agent user nothing else"
    )
)
_HIRAGANA = re.compile("[\u3041-\u3096]+")

ANSWER_TOKENS = 300
LEAST = 0.2
"""Share of a question's terms that must occur in the lines found for them to be an answer."""
SURE = 0.6
"""The same where more could be fetched."""
_ROLES = {"user": 1.3, "assistant": 1.1, "tool": 1.0, "call": 0.9}
_NEIGHBOUR = 0.4

_FILES = re.compile(
    r"\b(?:file|path|script|module|document|template)|文件|路径|ファイル|パス", re.I
)
_TOUCHED: dict[str, tuple[tuple[Status, ...], str]] = {
    "Created": (("created",), r"creat|\badd|\bnew\b|wr(?:ote|itten)|新建|新增|添加|新規|作成"),
    "Modified": (("modified", "renamed"), r"modif|chang|edit|updat|touch|修改|改动|変更|編集"),
    "Deleted": (("deleted", "former", "temporary"), r"delet|remov|renam|moved|删除|削除"),
    "Read": (("read",), r"\bread|open|inspect|look|view|读|看过|打开|読|参照"),
}
"""Statuses of files, and the words that ask for them."""
_LISTED = 16

_FORMS: dict[FormatKind, str] = {
    "json": r"\b(?:as|with|in|return) (?:an? |one )?JSON\b|JSON (?:object|对象|オブジェクト)",
    "table": r"\b(?:as|with|give|in) (?:an? )?(?:\w+ )?table\b|表格|表で|表形式",
    "numbered": r"\bnumbered\b|编号|番号付き",
    "bullets": r"\bbullet|项目符号|箇条書き",
    "comma_list": r"\bcommas?\b|逗号|カンマ|読点区切り",
    "single_line": r"\b(?:one|single)[ -]line\b|一行|1 ?行で",
}
_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_KEYS = re.compile(
    rf"(?:\bkeys|\bcolumns|\bfields|键为?|列为?|キーは)\W+({_NAME}(?:(?:, | and |、){_NAME})*)"
)
_QUOTED_KEY = re.compile(rf"`({_NAME})`")

SECTIONS = ("intent", "constraints", "files", "decisions", "state", "problems", "next_steps")
"""Sections of a summary, in the order in which they are written."""
_WEIGHTS = {"user": 2.0, "assistant": 1.0, "tool": 0.0}
_TELLING_WEIGHT = 0.15
_MOST = 0.3
"""Share of a summary that one section may take."""
_SORTED: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (section, roles, re.compile(pattern, re.IGNORECASE))
    for section, roles, pattern in (
        ("constraints", ("user",), r"\b(?:never|always|must|only|don't|not)\b|不|必|只|だけ|ない"),
        ("intent", ("user",), ""),
        ("problems", ("assistant", "tool"), r"error|exception|fail|\bbug\b|错误|失败|エラー|失敗"),
        ("decisions", ("assistant",), r"\b(?:because|so|instead|decided?)\b|因为|所以|ため|ので"),
        ("next_steps", ("assistant",), r"\b(?:next|todo|still|pending)\b|下一步|接下来|次|残り"),
        ("state", ("assistant", "tool"), ""),
    )
)
"""Sections with whose lines go there, and the words that tell; the first that fits is taken."""


def estimate_tokens(text: str) -> int:
    """Return a rough token count: four characters each, one for a Chinese or Japanese character."""
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def content_terms(text: str) -> list[str]:
    """Return the search terms of a text without those that carry no content."""
    return [t for t in terms(text) if t not in _COMMON and not _HIRAGANA.fullmatch(t)]


class Line(NamedTuple):
    """One line or sentence of a conversation."""

    message: int
    """Position of its message."""
    role: str
    """Role of the message; ``call`` for the name and the arguments of a tool call."""
    text: str


def lines_of(messages: Sequence[ChatMessage]) -> list[Line]:
    """Return the lines that have a word, at most 320 characters each; none of a system prompt."""
    result: list[Line] = []
    for at, message in enumerate(messages):
        calls = message.tool_calls or [] if isinstance(message, ChatMessageAssistant) else []
        texts = [(str(message.role), content_text(message))]
        texts += [("call", " ".join([call.function, *leaves(call.arguments)])) for call in calls]
        for role, text in texts if message.role != "system" else []:
            for line in text.splitlines():
                for part in _SENTENCE_END.split(line) if role in ("user", "assistant") else [line]:
                    pieces = map(str.strip, _PIECE.findall(part))
                    result.extend(Line(at, role, each) for each in pieces if re.search(r"\w", each))
    return result


class Index:
    """A conversation prepared for questions."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._lines = lines_of(messages)
        self._files = inventory_of(read_calls(calls_of_messages(messages)).events)
        self._ranking = Bm25([line.text for line in self._lines], b=0.35)
        self._message_of = np.array([line.message for line in self._lines])
        self._roles = np.array([_ROLES[line.role] for line in self._lines], dtype=np.float32)

    def answer(self, question: str, least: float) -> str | None:
        """Return an answer in the form that is asked for; None if nothing fits the question.

        Args:
            question: What is asked.
            least: Share of the question's terms that must occur in the lines found.
        """
        asks_for_files = _FILES.search(question) is not None
        touched = self._touched(question) if asks_for_files else {}
        found = self._found(question, ANSWER_TOKENS)
        if not touched and not _fits(question, found, least):
            return None

        def about(key: str) -> list[str]:
            paths = self._touched(key) if asks_for_files else {}
            own = self._found(f"{key} {key} {question}", ANSWER_TOKENS // 3)
            return list(chain.from_iterable(paths.values())) or [line.text for line in own]

        listed = [f"{label}: {', '.join(paths)}" for label, paths in touched.items()]
        return rendered([*listed, *(line.text for line in found)], question, about)

    def _touched(self, question: str) -> dict[str, list[str]]:
        """Return the paths of each kind of file operation that a question asks for."""
        asked = {
            label: self._files.with_status(*statuses)[-_LISTED:]
            for label, (statuses, pattern) in _TOUCHED.items()
            if re.search(pattern, question, re.IGNORECASE)
        }
        return {label: paths for label, paths in asked.items() if paths}

    def _found(self, question: str, budget: int) -> list[Line]:
        """Return the lines with the highest scores, each text once, within a budget of tokens."""
        own = self._ranking.scores(content_terms(question))
        scores = own.copy()
        same = self._message_of[1:] == self._message_of[:-1]
        scores[1:] += _NEIGHBOUR * np.where(same, own[:-1], 0)
        scores[:-1] += _NEIGHBOUR * np.where(same, own[1:], 0)
        scores *= self._roles
        chosen: dict[str, Line] = {}
        for at in np.argsort(-scores, kind="stable")[:60]:
            line = self._lines[at]
            cost = estimate_tokens(line.text) + 1
            if scores[at] > 0 and cost <= budget and line.text not in chosen:
                budget -= cost
                chosen[line.text] = line
        return list(chosen.values())


def _fits(question: str, found: Sequence[Line], least: float) -> bool:
    """Return whether lines have enough of a question's terms to be an answer.

    A pair of wide characters is half a word.
    """
    sizes = {term: 1 if term.isascii() else 0.5 for term in content_terms(question)}
    held = sum(sizes[term] for term in {t for line in found for t in terms(line.text)} & {*sizes})
    return held > 0 and held >= least * sum(sizes.values())


def rendered(texts: list[str], question: str, about: Callable[[str], list[str]]) -> str:
    """Return lines in the form that a question asks for.

    Args:
        texts: The lines, best first.
        question: What is asked.
        about: Returns the lines that fit a key of a JSON object.
    """
    forms = _FORMS.items()
    kind = next((name for name, words in forms if re.search(words, question, re.IGNORECASE)), None)
    if kind in ("json", "table"):
        match = _KEYS.search(question)
        keys = [*re.findall(_NAME, match[1]), *_QUOTED_KEY.findall(question)] if match else []
        keys = [key for key in dict.fromkeys(keys) if key != "and"]
        if kind == "json":
            return json.dumps({key: about(key) for key in keys or ["answer"]}, ensure_ascii=False)
        heads = keys or ["answer"]
        rows = [[*[*_names([text]), *heads][: len(heads) - 1], text] for text in texts]
        return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
    if kind == "comma_list":
        return ", ".join(_names(texts)[:_LISTED])
    if kind == "single_line":
        return " | ".join(texts)
    mark = {"bullets": "- ", "numbered": "{}. "}.get(kind or "", "")
    return "\n".join(mark.format(number) + text for number, text in enumerate(texts, 1))


def _names(texts: Sequence[str]) -> list[str]:
    """Return the names, paths and numbers in some lines; the lines if there are none."""
    names = (name.strip("`.,") for text in texts for name in _TELLING.findall(text))
    return list(dict.fromkeys(names)) or [text.replace(",", " ") for text in texts]


class Note(NamedTuple):
    """Something for a summary to keep."""

    section: str
    text: str
    message: int
    weight: float


def notes(messages: Sequence[ChatMessage], topic: str = "") -> list[Note]:
    """Return what may be worth keeping of a conversation, each text once.

    Args:
        messages: The conversation.
        topic: What is to get the most room; empty for nothing.
    """
    wanted = set(content_terms(topic))
    drafts = [*_of_lines(lines_of(messages)), *_of_files(messages)]
    focused = [n._replace(weight=n.weight + 9 * bool(wanted & set(terms(n.text)))) for n in drafts]
    return list({note.text: note for note in focused}.values())


def _of_lines(lines: Sequence[Line]) -> Iterator[Note]:
    for message, role, text in lines:
        for section, roles, pattern in _SORTED:
            if role in roles and pattern.search(text):
                weight = _WEIGHTS[role] + _TELLING_WEIGHT * len(_TELLING.findall(text))
                yield Note(section, text.lstrip("-*# "), message, weight)
                break


def _of_files(messages: Sequence[ChatMessage]) -> Iterator[Note]:
    for path, state in inventory_of(read_calls(calls_of_messages(messages)).events).states.items():
        if state.status != "read":
            names = f" ({', '.join(state.names)})" if state.names else ""
            yield Note("files", f"{path}: {state.status}{names}"[:320], state.last, 2.0)


def within(found: Sequence[Note], budget: int) -> list[Note]:
    """Return the weightiest notes that fit a budget of tokens, in the conversation's order."""
    chosen: list[Note] = []
    left = dict.fromkeys(SECTIONS, _MOST * budget)
    for note in sorted(found, key=lambda note: -note.weight):
        cost = estimate_tokens(note.text) + 3
        if cost <= min(budget, left.get(note.section, 0)):
            budget -= cost
            left[note.section] -= cost
            chosen.append(note)
    return sorted(chosen, key=lambda note: note.message)
