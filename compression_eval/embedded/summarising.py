"""Summaries from a conversation's own sentences, as free text or typed operations."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from compression_eval.embedded.conversation import (
    FileAction,
    Segment,
    Utterance,
    beginning,
    cut,
    file_actions,
    from_records,
    leaves,
)
from compression_eval.embedded.language import (
    SECTIONS,
    content_terms,
    estimate_tokens,
    is_wide,
    phrase,
    section_of,
    words,
)
from compression_eval.text.ranking import terms

DEFAULT_BUDGET = 1_200
"""Tokens of a summary if the request names no budget."""

_SHARES = {
    "intent": 0.2,
    "constraints": 0.15,
    "files": 0.15,
    "decisions": 0.18,
    "state": 0.12,
    "problems": 0.1,
    "next_steps": 0.1,
}
_MIN_NEW = 0.35
"""Share of a full budget that new notes may take; code evicts old entries then."""

_SIMILAR = 0.6
_OVERHEAD = 3
"""Tokens of a list mark and a line break."""

_HEADING = 6
_FOCUS = 1.5
_DIGITS = re.compile(r"\d")
_NAME = re.compile(r"\w_\w|[a-z][A-Z]|\w\(\)|`[^`]+`|[\w-]+/[\w./-]+|\w\.[a-z]{2,4}\b")
_ERROR = re.compile(
    r"\b\w*(?:Error|Exception)\b"
    r"|\b(?:FAIL(?:ED)?|Traceback|fatal:|panic:|error:|exit (?:code|status) [1-9])"
)
_OUTCOME = re.compile(
    r"\b(?:\d+ (?:passed|failed|issues?|errors?|warnings?|tests?)|OK\b|FAILED|Ran \d+)|-> \d{3}\b"
)
_PENDING = re.compile(r"^(?:pending|in_progress|todo|not_started|open)$", re.IGNORECASE)
_MIN_CHARACTERS = 8
_MIN_CHARACTERS_WIDE = 4
_MAX_NOTE = 260
_LATE = 0.75
_RARE = 3
_PROBLEMS_PER_RESULT = 2
_OUTCOMES_PER_RESULT = 2
_LINES_PER_RESULT = 4
"""Opening lines of a result, noted only if nothing more important fills the budget."""

_MAX_TODO_ITEMS = 8


@dataclass(frozen=True)
class Note:
    """Something to keep: its section, text, message and weight."""

    section: str
    text: str
    message: int
    weight: float

    @property
    def cost(self) -> int:
        """Its tokens in a summary."""
        return estimate_tokens(self.text) + _OVERHEAD


def summarise(history: list[Utterance], records: list[dict[str, Any]]) -> str:
    """Return a Markdown summary of the messages in a request, else of the history before it.

    Args:
        history: The messages before the request.
        records: The JSON Lines of the request: messages, budget, focus topic, earlier summary.
    """
    earlier = (
        text
        for record in records
        for key in ("earlier_summary", "previous_summary", "current_summary")
        if isinstance(text := record.get(key), str) and text.strip()
    )
    previous = [Utterance(-1, "user", text) for text in earlier][:1]
    utterances = [*previous, *(from_records(records) or history)]
    like = "\n".join(u.text for u in utterances if u.role == "user")[:2_000]
    notes = _notes(utterances, records)
    chosen = _within(notes, _budget_of(records) - _HEADING * len(SECTIONS))
    blocks = []
    for section in SECTIONS:
        lines = [f"- {note.text}" for note in chosen if note.section == section]
        body = "\n".join(lines) or phrase("empty", like)
        blocks.append(f"## {phrase(section, like)}\n{body}")
    return "\n\n".join(blocks)


def operations(records: list[dict[str, Any]]) -> str:
    """Return the reply to a request for typed operations on an anchored summary, as JSON."""
    current = _current(records)
    budget = _budget_of(records)
    used = sum(estimate_tokens(text) for entries in current.values() for _, text in entries)
    room = max(budget - used, int(_MIN_NEW * budget)) - _HEADING * len(SECTIONS)
    utterances = from_records(records)
    result: list[dict[str, str]] = []
    touched: set[str] = set()
    for note in _within(_notes(utterances, records), room):
        operation = _operation(note, current.get(note.section, []), touched)
        if operation is not None:
            result.append(operation)
    result.extend(_closings(current.get("next_steps", []), utterances, touched))
    return json.dumps({"operations": result}, ensure_ascii=False)


def _budget_of(records: list[dict[str, Any]]) -> int:
    """Return the budget that a request states, in tokens; the default if it states none."""
    budgets = (record.get("budget_tokens") for record in records)
    stated = (budget for budget in budgets if isinstance(budget, int) and budget > 0)
    return next(stated, DEFAULT_BUDGET)


def _within(notes: list[Note], budget: int) -> list[Note]:
    """Return the notes that fit a budget of tokens, in the order of the conversation.

    Every section first gets its share, so that a long one cannot crowd out the others; the rest
    goes to the remaining notes with the highest weights.
    """
    left = {section: int(share * budget) for section, share in _SHARES.items()}
    chosen: list[Note] = []
    rest: list[Note] = []
    for note in notes:
        fits = note.cost <= left[note.section]
        left[note.section] -= note.cost if fits else 0
        (chosen if fits else rest).append(note)
    spare = sum(left.values())
    for note in rest:
        if note.cost <= spare:
            spare -= note.cost
            chosen.append(note)
    return sorted(chosen, key=lambda note: note.message)


def _current(records: list[dict[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Return the (id, text) pairs per section of the summary that a request holds."""
    for record in records:
        summary = record.get("current_summary")
        sections = summary.get("sections") if isinstance(summary, dict) else None
        if isinstance(sections, dict):
            return {
                str(name): [
                    (entry["id"], entry["text"])
                    for entry in entries
                    if isinstance(entry, dict)
                    and isinstance(entry.get("id"), str)
                    and isinstance(entry.get("text"), str)
                    and not entry.get("closed")
                ]
                for name, entries in sections.items()
                if isinstance(entries, list)
            }
    return {}


def _operation(
    note: Note, entries: list[tuple[str, str]], touched: set[str]
) -> dict[str, str] | None:
    """Return the operation that adds a note; None if an entry says the same already."""
    for key, text in entries:
        if text.strip() == note.text.strip():
            return None
        if key not in touched and _replaces(note, text):
            touched.add(key)
            # The entry keeps what it says of the file so far.
            merged = f"{text}; then {note.text.split(': ', 1)[-1]}"
            new = merged if note.section == "files" else note.text
            return {"op": "supersede", "id": key, "text": new}
    return {"op": "add", "section": note.section, "text": note.text}


def _replaces(note: Note, text: str) -> bool:
    """Return whether a note and an entry have one subject: the same file or mostly same words."""
    if note.section == "files":
        return note.text.split(": ", 1)[0] == text.split(": ", 1)[0]
    ours, theirs = set(terms(note.text)), set(terms(text))
    return len(ours & theirs) >= _SIMILAR * max(len(ours | theirs), 1)


def _closings(
    entries: list[tuple[str, str]], utterances: list[Utterance], touched: set[str]
) -> Iterator[dict[str, str]]:
    """Yield an operation that closes each open step that a later sentence reports as done."""
    sentences = [
        line.strip()
        for utterance in utterances
        if utterance.role in ("assistant", "user")
        for line in utterance.text.splitlines()
        if words("states", "done").search(line)
    ]
    for key, text in entries:
        step = set(terms(text))
        done = (s for s in sentences if len(step & set(terms(s))) >= _SIMILAR * len(step))
        if key not in touched and step and (sentence := next(done, None)):
            yield {"op": "close", "id": key, "text": beginning(sentence, 200)}


def _notes(utterances: list[Utterance], records: list[dict[str, Any]]) -> list[Note]:
    """Return the notes worth keeping, the highest weight first, ties in order.

    Notes on the request's focus topic, if it has one, are moved up.
    """
    segments = cut(utterances).segments
    frequency = Counter(term for segment in segments for term in set(terms(segment.text)))
    by_message: defaultdict[int, list[Segment]] = defaultdict(list)
    for segment in segments:
        if segment.kind != "called":
            by_message[segment.message].append(segment)
    drafts: list[Note] = []
    for position, utterance in enumerate(utterances):
        own, place = by_message[position], position / len(utterances)
        if utterance.role == "user":
            drafts.extend(_of_user(own, place))
        elif utterance.role == "assistant":
            drafts.extend(_of_assistant(own, place))
            drafts.extend(_todos(utterance, place, position))
        elif utterance.role == "tool":
            drafts.extend(_of_result(own, place))
    notes = [replace(n, weight=n.weight + _richness(n.text, frequency)) for n in drafts]
    notes.extend(_of_files(file_actions(utterances)))
    distinct: dict[tuple[str, str], Note] = {}
    for note in notes:
        distinct.setdefault((note.section, " ".join(note.text.casefold().split())), note)
    weighed = sorted(distinct.values(), key=lambda note: -note.weight)
    topic = next((text for r in records if isinstance(text := r.get("focus_topic"), str)), "")
    if wanted := set(content_terms(topic)):
        weighed.sort(key=lambda note: -note.weight - _FOCUS * bool(wanted & set(terms(note.text))))
    return weighed


def _worth(text: str) -> bool:
    return len(text) >= (_MIN_CHARACTERS_WIDE if is_wide(text) else _MIN_CHARACTERS)


def _of_user(segments: list[Segment], place: float) -> Iterator[Note]:
    for segment in segments:
        text = beginning(segment.text, _MAX_NOTE).lstrip("-* ")
        carried = section_of(segment.title) if segment.title else None
        if not _worth(text) or text.startswith(("#", "[")):
            continue
        if carried is not None:
            yield Note(carried, text, segment.message, 2.4)
        elif words("sought", "constraint").search(text):
            yield Note("constraints", text, segment.message, 2.6)
        else:
            weight = 2.0 + (0.3 if segment.line == 0 else 0) + 0.2 * place
            yield Note("intent", text, segment.message, weight)


def _of_assistant(segments: list[Segment], place: float) -> Iterator[Note]:
    for segment in segments:
        text = beginning(segment.text, _MAX_NOTE).lstrip("-* ")
        if not _worth(text) or text.startswith("#"):
            continue
        reason = words("sought", "reason").search(text) is not None
        if reason or words("sought", "decision").search(text):
            yield Note("decisions", text, segment.message, 1.2 + (0.4 if reason else 0))
        elif words("cues", "error").search(text):
            yield Note("problems", text, segment.message, 1.1)
        elif place > _LATE and words("sought", "open").search(text):
            yield Note("next_steps", text, segment.message, 1.2 + place)
        else:
            telling = _DIGITS.search(text) or _NAME.search(text)
            weight = (0.7 if telling else 0.2) + 0.5 * place
            yield Note("state", text, segment.message, weight)


def _of_result(segments: list[Segment], place: float) -> Iterator[Note]:
    problems = [s for s in segments if _ERROR.search(s.text)]
    for segment in problems[-_PROBLEMS_PER_RESULT:]:
        yield Note("problems", beginning(segment.text, _MAX_NOTE), segment.message, 0.8)
    outcomes = [s for s in segments if _OUTCOME.search(s.text) and s not in problems]
    for segment in outcomes[-_OUTCOMES_PER_RESULT:]:
        yield Note("state", beginning(segment.text, _MAX_NOTE), segment.message, 0.5 + 0.6 * place)
    for segment in segments[:_LINES_PER_RESULT]:
        if _worth(segment.text) and segment not in problems and segment not in outcomes:
            yield Note("state", beginning(segment.text, _MAX_NOTE), segment.message, 0.1 * place)


def _todos(utterance: Utterance, place: float, position: int) -> Iterator[Note]:
    """Yield the unfinished items of a to-do list that was written by a tool call."""
    for call in utterance.calls:
        for items in call.arguments.values():
            for item in items[-_MAX_TODO_ITEMS:] if isinstance(items, list) else []:
                if not isinstance(item, dict):
                    continue
                values = [text for _key, text in leaves(item)]
                if any(_PENDING.match(value) for value in values):
                    text = beginning(max(values, key=len), _MAX_NOTE)
                    yield Note("next_steps", text, position, 0.6 + place)


def _of_files(actions: list[FileAction]) -> Iterator[Note]:
    """Yield one note per file that was created, changed, renamed or deleted."""
    grouped: dict[str, list[FileAction]] = {}
    for action in actions:
        if action.action != "read":
            grouped.setdefault(action.path, []).append(action)
    for path, done in grouped.items():
        details = dict.fromkeys(action.detail for action in done if action.detail)
        verbs = "/".join(dict.fromkeys(action.action for action in done))
        text = f"{path}: {verbs}" + (f" ({'; '.join(list(details)[-4:])})" if details else "")
        yield Note("files", beginning(text, _MAX_NOTE), done[-1].message, 1.8 + 0.1 * len(done))


def _richness(text: str, frequency: Counter[str]) -> float:
    """Return up to 1 for what cannot be guessed: numbers, names, rare words."""
    rare = sum(1 for term in set(terms(text)) if frequency[term] <= _RARE)
    return (
        0.25 * (_DIGITS.search(text) is not None)
        + 0.25 * (_NAME.search(text) is not None)
        + min(0.5, 0.06 * rare)
    )
