"""Pass ``numbers``: phone, card and social security numbers.

Only forms that other numbers do not have: ids, sizes and times are what probes ask about.
"""

import re
from collections.abc import Iterator
from functools import partial

from compression_eval.conversations.scrubbing.hits import Hit
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.scrubbing.words import words

_ascii = partial(re.compile, flags=re.ASCII)
NAME = "numbers"

_START = r"(?:(?<![\w.+:/=-])|(?<=\\[nrt]))"
_PHONES = {
    "phone-international": _ascii(
        r"(?:(?<![\w+/.=-])|(?<=\\[nrt]))\+[1-9]\d{0,2}(?:[ .-]?\(\d{1,4}\))?"
        r"(?:[ .-]?\d{1,5}){1,5}(?![\w.-]?\d|\w)"
    ),
    "phone-us": _ascii(
        r"(?:(?<![\w.+/-])|(?<=\\[nrt]))(?:1[ .-])?(?:\([2-9]\d\d\)[ ]?|[2-9]\d\d[.-])"
        r"[2-9]\d\d[.-]\d{4}(?![\w-]|\.\d)"
    ),
    "phone-trunk": _ascii(
        r"(?:(?<![\w.+/-])|(?<=\\[nrt]))(?:0\d{1,3}-\d{2,4}-\d{4}|1[3-9]\d-\d{4}-\d{4})(?![\w-]|\.\d)"
    ),
    "phone-named": _ascii(
        r"(?i:phone|mobile|tel|telephone|cell|fax|whatsapp|sms|電話|携帯|电话|手机|手機|联系方式)"
        r"[^\d\n+]{0,12}(?P<number>\+?\d(?:[ .-]?\d){8,13})(?![\w.]?\d)"
    ),
}
_CARD = _ascii(
    _START + r"(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\w.-]?\d|\w)"
)
_CARD_PREFIX = _ascii(r"4|5[1-5]|2(?:2[2-9]|[3-6]|7[01]|720)|3[47]|35|6(?:011|4|5|2)")
_SSN = _ascii(_START + r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w.-]?\d|\w)")
_RUN = _ascii(r"\d[\d .()-]{7,}")
_BEFORE_RUN = 30
_DATE = _ascii(r"(?:19|20)\d\d-\d\d-\d\d")
_NOT_GIVEN_OUT = _ascii(r".*55501\d\d")


class Numbers:
    """Finds numbers that stand for a person or an account."""

    name = NAME

    def learn(self, text: str, vocabulary: Vocabulary) -> None:
        """Note nothing: these numbers are looked for by their form alone."""

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield the numbers of one text; only long runs of digits and separators are read."""
        for run in _RUN.finditer(text):
            yield from _in_window(text, max(0, run.start() - _BEFORE_RUN), run.end() + 3)


def _in_window(text: str, start: int, end: int) -> Iterator[Hit]:
    for rule, form in _PHONES.items():
        for found in form.finditer(text, start, end):
            group = "number" if "number" in form.groupindex else 0
            before = text[max(0, found.start() - 1) : found.start()]
            if _is_phone(rule, found[group], before):
                yield Hit(*found.span(group), rule, "phone")
    for found in _CARD.finditer(text, start, end):
        if _is_card(re.sub(r"\D", "", found[0])):
            yield Hit(*found.span(), "card", "card")
    for found in _SSN.finditer(text, start, end):
        yield Hit(*found.span(), "ssn", "ssn")


def _is_phone(rule: str, number: str, before: str) -> bool:
    digits = re.sub(r"\D", "", number)
    if _NOT_GIVEN_OUT.fullmatch(digits) or len(set(digits)) < 4:
        return False
    if rule == "phone-international":
        added_line = before in ("", "\n") and number.lstrip("+").isdigit()
        return 10 <= len(digits) <= 15 and not added_line and not _DATE.search(number)
    if rule == "phone-trunk":
        return len(digits) in (10, 11)
    return 9 <= len(digits) <= 14


def _is_card(digits: str) -> bool:
    if digits in words("cards") or not _CARD_PREFIX.match(digits) or len(set(digits)) < 4:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0
