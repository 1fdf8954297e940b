r"""Look facts up in a text: one spelling for both, then whole tokens.

`normalise` brings text and form to one spelling: Unicode, case, quotes, dashes, white space,
Markdown, list punctuation, thousands and units. `Text` finds a form in it as whole tokens:

* A form that begins or ends with a letter, digit or underscore is not found inside a longer token:
  not ``3`` in ``30``, not ``foo`` in ``foo_bar``. Chinese, Japanese and Korean characters need no
  boundary, because their words are not set apart.
* A number is not found inside a longer number (``3`` in ``3.5``, ``v1.2`` in ``v1.2.3``), a
  numbered name or a route not inside a longer one (``N-2044`` in ``N-2044-2``, ``/api/login`` in
  ``/api/login/refresh``).
* Files and paths are whole names (not ``store.py`` in ``my-store.py`` or ``store.py.bak``), but
  ``session_store.py`` is found in ``auth/session_store.py``. A base name that a bank accepts for a
  path is not found below another folder: for ``infra/retry.py``, ``retry.py`` alone and
  ``app/infra/retry.py`` are found, ``services/retry.py`` is not.

A look-up does not understand what a text says. It finds what is denied or outdated, and misses what
is said in other words: a bank lists the forms that count, and a language model decides where there
is one.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

_CJK = (
    "\u2e80-\u303f\u3040-\u312f\u3190-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = f"{_CJK}\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED_SCRIPT = re.compile(f"[{_UNSPACED}]")
JOINS = rf"[^\W{_UNSPACED}]"
"""A character that forms one token with an adjoining one."""

_UNITS = (
    "ns|us|μs|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|"
    "b|bytes?|[kmgt]i?b|k|px|em|rem|x|[kmg]?hz|rps|qps|req/s|tokens?|%"
)
_EXTENSIONS = (
    "bash|c|cc|cfg|conf|cpp|cs|css|csv|env|go|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|lock|log|"
    "md|mjs|php|proto|py|pyi|rb|rs|rst|scss|sh|sql|swift|toml|ts|tsv|tsx|txt|vue|xml|ya?ml"
)
_CHARACTERS = str.maketrans(
    {
        **dict.fromkeys('‘’‚‛“”„‟′″«»‹›「」『』《》"', "'"),
        **dict.fromkeys("‐‑‒–—―−﹘", "-"),
        **dict.fromkeys("→⇒➜➔", "->"),
        **dict.fromkeys("`\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff", ""),
        "⋯": "...",
        "〜": "~",
        "≥": ">=",
        "≤": "<=",
        "≠": "!=",
    }
)

# A pattern that begins with a character is searched many times as fast as one that begins with a
# look-behind, so what must not be before is looked at after. No pattern may repeat a part that
# overlaps with its neighbour, so that hostile text takes linear time.
_BLANKS = re.compile(r"[^\S\n]+")
_LINE_BREAKS = re.compile(r" ?\n[\n ]*")
_LAYOUT = re.compile(
    r"\n(?:(?:> ?)+|#{1,6} |(?:[-+•·‣▪]|\*(?! [*\d])) (?:\[[ x]\] )?|\d{1,2}[.)] (?=\S))+"
)
_BOLD = re.compile(rf"\*\*(?:(?<!{JOINS}\*\*)|(?!{JOINS}))")
_ITALIC = re.compile(rf"\*(?:(?<!{JOINS}\*)(?<!\*\*)(?=\w)|(?<=\w\*)(?!{JOINS}|\*))")
_GROUPED = re.compile(
    rf"[1-9](?<!{JOINS}[1-9])(?<![.,][1-9])\d{{0,2}}"
    r"(?:(?:,\d{3})+(?![\d_]|,\S)|(?:_\d{3})+(?!\w))"
)
_UNIT = re.compile(rf"([0-9](?<![a-z0-9_.][0-9])[0-9]*+(?:\.[0-9]++)?+)({_UNITS})(?![a-z0-9_])")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)t(?=\d\d:\d\d)")
_HERE = re.compile(r"(?:\.(?<![\w./]\.)/|/(?<![\w./]/)workspace/)(?=[\w.])")
_SEPARATORS = re.compile(r"(?: [,;|、]|[,;|、])[ ,;|、]*")
_SPACE_AT_SIGN = re.compile(r" (?:(?=->|[=:()\[\]{}<>])|(?<=[=:()\[\]{}<>] ))")
_QUOTED_NAME = re.compile(r"'([\w.-]+)'(?=[:=])")
_QUOTED_NUMBER = re.compile(r"'(?<=[:=]')(-?\d+(?:\.\d+)?)'")
_CJK_SPACE = re.compile(rf" (?:(?<=[{_CJK}] )|(?=[{_CJK}]))")

_MAX_KEPT = 300
"""Characters of a text whose spelling is kept: forms and questions are compared again and again."""


def normalise(text: str) -> str:
    """Return ``text`` in the one spelling that look-ups compare.

    Unicode is brought to NFKC and case is folded; quotes, dashes, arrows and ellipses are unified;
    emphasis, backticks, list marks and list punctuation go; thousands separators go, units are set
    apart from numbers and times from dates; names before ``:`` or ``=``, and numbers after, lose
    their quotes; white space is collapsed, and goes altogether next to Chinese and Japanese
    characters and next to brackets, colons and equals signs.
    """
    return _kept(text) if len(text) <= _MAX_KEPT else _normalised(text)


def _normalised(text: str) -> str:
    text = text.translate(_CHARACTERS)
    if text.isascii():
        text = text.casefold()
    else:
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _LINE_BREAKS.sub("\n", "\n" + _BLANKS.sub(" ", text))
    text = _LAYOUT.sub("\n, ", text)
    text = _ITALIC.sub("", _BOLD.sub("", text))
    text = _BLANKS.sub(" ", text.replace("\n", " "))
    text = _GROUPED.sub(lambda match: match[0].replace(",", "").replace("_", ""), text)
    text = _HERE.sub("", _TIMESTAMP.sub(r"\1 ", _UNIT.sub(r"\1 \2", text)))
    text = _SEPARATORS.sub(_separator, text)
    text = _SPACE_AT_SIGN.sub("", text).replace("=>", "->")
    text = _QUOTED_NUMBER.sub(r"\1", _QUOTED_NAME.sub(r"\1", text))
    return _CJK_SPACE.sub("", text).strip(" ,")


_kept = functools.lru_cache(maxsize=8192)(_normalised)


def _separator(match: re.Match[str]) -> str:
    """Return a space for list punctuation, or a comma where a space would vanish next to CJK."""
    start, end = match.span()
    around = match.string[max(start - 1, 0) : start] + match.string[end : end + 1]
    return "," if _UNSPACED_SCRIPT.search(around) else " "


class Text:
    """A text prepared once for many look-ups.

    Args:
        text: Any text; it is data and never interpreted.
    """

    def __init__(self, text: str) -> None:
        self.source = text
        self.normalised = normalise(text)
        """The text in the spelling that is searched."""

    def spells(self, form: str) -> bool:
        """Return whether ``form`` occurs in the text; never so for an empty form."""
        return next(self.occurrences(form), None) is not None

    def has_any(self, forms: Iterable[str]) -> bool:
        """Return whether at least one of the forms of a fact occurs in the text.

        Among the forms of a path, its base name is not found below another folder.
        """
        names = [normalise(form) for form in forms]
        return any(
            not (paths := paths_of(name, names))
            or _fits(_folder_before(self.normalised, start), paths)
            for name in names
            for start, _ in self.occurrences(name)
        )

    def occurrences(self, form: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each occurrence of ``form`` in `normalised`, without overlaps."""
        form, before, after = _wanted(form)
        start = self.normalised.find(form) if form else -1
        while start >= 0:
            end = start + len(form)
            fits = before.match(self.normalised, start) and after.match(self.normalised, end)
            if fits:
                yield start, end
            start = self.normalised.find(form, end if fits else start + 1)


@functools.lru_cache(maxsize=8192)
def _wanted(form: str) -> tuple[str, re.Pattern[str], re.Pattern[str]]:
    """Return a form without its final punctuation and quotes, and what may be before and after."""
    form = normalise(form)
    form = form.rstrip(".:!?。 ") or form
    if len(form) > 2 and form[0] == form[-1] == "'" and "'" not in form[1:-1]:
        form = form[1:-1].strip()
    before, after = "", ""
    if form and (joins(form[0]) or re.match(r"-\d", form)):
        before += f"(?<!{JOINS})"
    if form and joins(form[-1]):
        after += f"(?!{JOINS})"
    is_file = re.search(rf"\.(?:{_EXTENSIONS})$", form)
    if is_file or ("/" in form and " " not in form):
        before += f"(?<!{JOINS}-)" if before else ""
        after += f"(?!-{JOINS})" if after else ""
    if is_file:
        after += rf"(?!\.{JOINS})"
    if form[:1].isdigit():
        before += r"(?<![\d\s(=:'\[]\.)(?<!^\.)"
    if form[-1:].isdigit():
        after += r"(?!\.\d|-(?:rc|alpha|beta|pre|dev|snapshot))"
    if after and form[0] == "/":
        after += r"(?!/[\w-]++(?![./]))"
    elif re.search(r"[a-z]-\d+$", form):
        after += r"(?!-\d)"
    return form, re.compile(before), re.compile(after)


def joins(character: str) -> bool:
    """Return whether a character forms one token with an adjoining letter or digit."""
    if character == "_":
        return True
    return character.isalnum() and not _UNSPACED_SCRIPT.match(character)


def paths_of(name: str, forms: Iterable[str]) -> list[str]:
    """Return the forms that are paths of a file with this base name."""
    return [form for form in forms if "/" not in name and form.endswith(f"/{name}")]


def other_paths(name: str, paths: Sequence[str], text: str) -> list[str]:
    """Return the distinct paths in a text that end in a base name and are not in ``paths``."""
    if f"/{name}" not in text:
        return []
    pattern = re.compile(rf"(?<=/){re.escape(name)}(?![\w-]|\.\w)")
    folders = [_folder_before(text, match.start()) for match in pattern.finditer(text)]
    return [f"{folder}{name}" for folder in dict.fromkeys(folders) if not _fits(folder, paths)]


_FOLDER = re.compile(r"[^\s'(){}\[\]<>=:,|]*$")
_AFTER_WORDS = re.compile(r"^[^/]*[^\x00-\x7f](?=[\x21-\x7f])")


def _folder_before(text: str, start: int) -> str:
    """Return the folder right before a base name in a text; empty if there is none."""
    if not start or text[start - 1] != "/":
        return ""
    match = _FOLDER.search(text[max(start - 200, 0) : start])
    return match[0] if match else ""


def _fits(folder: str, paths: Sequence[str]) -> bool:
    """Return whether a base name below ``folder`` can be the file of one of ``paths``.

    Folders that name nothing (``../``, ``…/``, ``*/``) fit everywhere. Chinese and Japanese set no
    blank before a path, so a folder may have words of the sentence at its beginning.
    """
    if not re.search(r"\w", folder):
        return True
    stripped = folder.strip("/")
    own = [path.rpartition("/")[0].strip("/") for path in paths]
    return any(
        _ends_with(stripped, place) or _ends_with(place, _AFTER_WORDS.sub("", stripped))
        for place in own
    )


def _ends_with(longer: str, end: str) -> bool:
    if not longer.endswith(end):
        return False
    before = longer[: len(longer) - len(end)][-1:]
    return not before or before == "/" or not before.isascii()
