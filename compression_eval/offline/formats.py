"""Seeing which form a question asks for, and giving an answer that form."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from compression_eval.fixtures.banks import FormatKind
from compression_eval.offline.segments import beginning

_KINDS: tuple[tuple[FormatKind, re.Pattern[str]], ...] = (
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
_LONGEST_CELL = 160
_MOST_ROWS = 6
_DEFAULT_ITEMS = 8


@dataclass(frozen=True)
class Form:
    """The form an answer is asked in."""

    kind: FormatKind
    keys: tuple[str, ...] = ()
    items: int | None = None


def requested(question: str) -> Form | None:
    """Return the form that a question asks for; None if it asks for none that is known."""
    for kind, pattern in _KINDS:
        match = pattern.search(question)
        if match is None or not _is_request(question, match):
            continue
        keys = _keys(question) if kind in ("json", "table") else ()
        return Form(kind, keys, _items(question))
    return None


def _is_request(question: str, match: re.Match[str]) -> bool:
    """Tell "answer as a table" from "which table did the migration change"."""
    around = question[max(0, match.start() - 60) : match.end() + 30]
    if _DATA_ABOUT.search(question[max(0, match.start() - 8) : match.end()]):
        return False
    return _ASKED.search(around) is not None


def _keys(question: str) -> tuple[str, ...]:
    after = _KEYS_AFTER.search(question)
    quoted = _QUOTED.findall(after.group(1) if after else question)
    if quoted:
        return tuple(dict.fromkeys(quoted))
    bare = _BARE_KEYS.search(question)
    if bare is None:
        return ()
    return tuple(key for key in _SEPARATOR.split(bare.group(1)) if key)


def _items(question: str) -> int | None:
    match = _ITEMS.search(question)
    if match is None:
        return None
    text = (match.group(1) or match.group(2)).casefold()
    return _NUMBERS.get(text) or (int(text) if text.isdigit() and int(text) else None)


def render(extracts: list[str], form: Form | None, about: Callable[[str], list[str]]) -> str:
    """Put extracts into a form.

    Args:
        extracts: Lines of the answer, best first.
        form: The form asked for; None for plain lines.
        about: Gives the lines that fit a key or a column head.
    """
    if form is None:
        return "\n".join(extracts)
    if form.kind == "json":
        keys = form.keys or ("answer",)
        values = {key: about(key) if len(keys) > 1 else extracts for key in keys}
        return json.dumps(
            {key: _value(value or extracts[:1]) for key, value in values.items()},
            ensure_ascii=False,
        )
    if form.kind == "table":
        return _table(extracts, form.keys or ("item", "detail"))
    return _plain(extracts, form)


def _value(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts


def _plain(extracts: list[str], form: Form) -> str:
    if form.kind == "single_line":
        return " | ".join(" ".join(text.split()) for text in extracts)
    if form.kind == "comma_list":
        return ", ".join(_telling(extracts)[: form.items or 2 * _DEFAULT_ITEMS])
    items = _exactly(extracts, form.items) if form.items else extracts
    numbered = form.kind == "numbered"
    marks = [f"{number}." if numbered else "-" for number in range(1, len(items) + 1)]
    return "\n".join(f"{mark} {text}" for mark, text in zip(marks, items, strict=True))


def _exactly(extracts: list[str], count: int) -> list[str]:
    """Share the extracts out over as many items as were asked for."""
    items = [" | ".join(extracts[at::count]) for at in range(count)]
    return [item or "-" for item in items]


def _telling(extracts: list[str]) -> list[str]:
    """Return the names, paths and numbers of the extracts; the extracts if there are none."""
    found: dict[str, None] = {}
    for text in extracts:
        for quoted, bare in _TELLING.findall(text):
            found[(quoted or bare).strip(",. ").replace(",", "")] = None
    return [item for item in found if item] or [text.replace(",", " ") for text in extracts]


def _table(extracts: list[str], heads: tuple[str, ...]) -> str:
    rows = [_row(heads), _row(["---"] * len(heads))]
    for text in extracts[:_MOST_ROWS]:
        names = _telling([text])[: len(heads) - 1]
        cells = [*names, *[""] * (len(heads) - 1 - len(names)), beginning(text, _LONGEST_CELL)]
        rows.append(_row(cells))
    return "\n".join(rows)


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"
