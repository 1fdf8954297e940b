"""Mechanical checks of whether an answer has the requested form and respects a rule.

They alone judge the form of an abstention, on which graders differ most, and of any answer that the
embedded grader judges.
"""

import json
import re

from compression_eval.fixtures.banks import Constraint, FormatKind, RequestedFormat
from compression_eval.grading.rubric import MAX_SCORE
from compression_eval.text.lookup import Text

_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_BULLET = re.compile(r"^\s*[-*+•・]\s+\S")
_NUMBER = re.compile(r"^\s*\d+[.)．、]\s*\S")
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_COMMAS = re.compile(r"\s*[,，、]\s*")


def format_score(answer: str, form: RequestedFormat | None) -> tuple[float, str]:
    """Return the score for the form of an answer, 0 to 5, and the reason.

    Args:
        answer: What the model said.
        form: What was asked for; None if nothing was.
    """
    if re.search(r"\w", answer) is None:
        return 0.0, "The answer is empty."
    if form is None:
        return MAX_SCORE, "No format was asked for; any text meets that."
    share, reason = share_kept(answer, form.kind, form.keys, form.items)
    return round(MAX_SCORE * share, 2), reason


def constraint_score(answer: str, rule: Constraint | None) -> tuple[float | None, str]:
    """Return 5 for an answer that keeps to a rule and 0 for one that breaks it, and the reason.

    Args:
        answer: What the model said.
        rule: The user's; None if there is none.

    Returns:
        None for the score if there is no rule, or no known sign that it was broken.
    """
    if rule is None:
        return None, "No constraint was stated."
    if re.search(r"\w", answer) is None:
        return 0.0, "The answer is empty."
    if not rule.violated_by:
        return None, "The ground truth does not say what would break the constraint."
    text = Text(answer)
    if broken := sum(text.spells(form) for form in rule.violated_by):
        return 0.0, f"The answer contains {broken} texts that break the constraint."
    return MAX_SCORE, "Nothing that breaks the constraint is in the answer."


def share_kept(
    answer: str, kind: FormatKind, keys: list[str], items: int | None
) -> tuple[float, str]:
    """Return the share of a format's demands that an answer meets, from 0 to 1, and the reason.

    The kind is half of it where keys or a number of items are asked for as well; without the kind
    the rest does not count.
    """
    text = answer.strip()
    if kind == "json":
        return _json(text, keys)
    if kind == "table":
        return _table(text, keys)
    if kind == "single_line":
        met = len(text.splitlines()) == 1
        return float(met), "One line, as asked." if met else "More than one line."
    if kind == "comma_list":
        parts = [part for part in _COMMAS.split(text) if part]
        met = len(text.splitlines()) == 1 and len(parts) > (0 if items == 1 else 1)
        return _counted(float(met), len(parts), items, "comma-separated list")
    lines = [line for line in text.splitlines() if line.strip()]
    pattern = _BULLET if kind == "bullets" else _NUMBER
    listed = sum(1 for line in lines if pattern.match(line))
    name = "bulleted list" if kind == "bullets" else "numbered list"
    return _counted(listed / len(lines) if lines else 0.0, listed, items, name)


def _counted(share: float, count: int, items: int | None, name: str) -> tuple[float, str]:
    if not share:
        return 0.0, f"Not a {name}."
    if items is None:
        return share, f"A {name}" + ("." if share == 1 else ", in part.")
    right = count == items
    return share * (1.0 if right else 0.5), f"A {name} of {count} items; {items} were asked for."


def _json(text: str, keys: list[str]) -> tuple[float, str]:
    fenced = _FENCE.match(text)
    try:
        value = json.loads(fenced.group(1) if fenced else text)
    except (json.JSONDecodeError, RecursionError):
        return 0.0, "Not JSON."
    if not keys:
        return 1.0, "JSON, as asked."
    row = value[0] if isinstance(value, list) and value else value
    have = sum(1 for key in keys if isinstance(row, dict) and key in row)
    return 0.5 + 0.5 * have / len(keys), f"JSON with {have} of {len(keys)} keys."


def _table(text: str, heads: list[str]) -> tuple[float, str]:
    lines = [line for line in text.splitlines() if line.strip()]
    at = next((n for n, line in enumerate(lines) if _RULE.match(line) and "-" in line), 0)
    if at == 0 or "|" not in lines[at - 1]:
        return 0.0, "Not a Markdown table."
    if not heads:
        return 1.0, "A table, as asked."
    cells = {cell.strip(" *`").casefold() for cell in lines[at - 1].strip().strip("|").split("|")}
    have = sum(1 for head in heads if head.casefold() in cells)
    return 0.5 + 0.5 * have / len(heads), f"A table with {have} of {len(heads)} column heads."
