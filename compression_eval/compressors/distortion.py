r"""Near variants of a fact in a text: the same name with another value.

Only settings can be told apart from coincidence by look-ups. A fact has a name if one of its forms
is ``name=value``, ``name: value``, or a name with ``_`` or ``-`` inside followed by a number
(``Retry-After 2``, ``lift_after_s of 360``). A variant is that name, as a whole token, followed by
a number that no form of the fact gives.

Limits, on purpose: numbers that count something (``17 ranges``, ``48 小时``), dates, codes and
words have no name and so no variants; a name that stands for several things (``timeout`` of two
services) gives a false one; and ``name from 24 to 8`` says nothing.
"""

import re
from collections.abc import Iterator, Sequence

from compression_eval.fixtures.matching import normalise

_NUMBER = r"-?\d+(?:\.\d+)?"
_SETTING = re.compile(
    rf"^'?(?P<name>[a-z][\w.-]*[a-z0-9])'?(?P<between> ?[:=|(] ?| (?:of|is|was|to|at) | )"
    rf"(?:(?:int|float) ?= ?)?'?(?P<value>{_NUMBER})\b"
)
_BETWEEN = r"'?(?:\s?[:=|(,]\s?|\s(?:of|is|to|at|set to|is set to|stays at|stays)\s|\s|->)'?"
_CHANGED_TO = re.compile(rf"^[^.\n]{{0,12}}?(?:->|\bto\b)\s?'?(?P<value>{_NUMBER})")
_WHOLE = r"(?![\d_a-z]|\.\d)"


def variants(forms: Sequence[str], text: str) -> list[str]:
    """Return each name of a fact with another value that stands in a text, in order.

    Args:
        forms: All accepted forms of the fact.
        text: Any text.
    """
    settings = list(_settings(forms))
    accepted = {value for _, value in settings}
    found: list[str] = []
    searched = normalise(text) if settings else ""
    for name in dict.fromkeys(name for name, _ in settings):
        pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}{_BETWEEN}(?P<value>{_NUMBER}){_WHOLE}")
        for match in pattern.finditer(searched):
            changed = _CHANGED_TO.match(searched[match.end() : match.end() + 30])
            value = changed["value"] if changed else match["value"]
            if float(value) not in accepted:
                found.append(f"{name} {value}")
    return list(dict.fromkeys(found))


def _settings(forms: Sequence[str]) -> Iterator[tuple[str, float]]:
    for form in forms:
        match = _SETTING.match(normalise(form))
        if match is None:
            continue
        name = match["name"]
        if match["between"].strip() in (":", "=") or "_" in name or "-" in name:
            yield name, float(match["value"])
