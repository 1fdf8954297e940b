"""Finding what is worth keeping of a conversation: notes, each for a section of a summary."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compression_eval.offline import lexicon
from compression_eval.offline.artifacts import FileAction, file_actions
from compression_eval.offline.phrases import section_of
from compression_eval.offline.reading import Utterance, leaves
from compression_eval.offline.segments import Segment, beginning, cut
from compression_eval.offline.tokens import is_wide, terms

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
_LEAST_CHARACTERS = 8
_LEAST_CHARACTERS_WIDE = 4
_LONGEST = 260
_LATE = 0.75
_RARE = 3
_PROBLEMS_PER_RESULT = 2
_OUTCOMES_PER_RESULT = 2
_LINES_PER_RESULT = 4
"""Opening lines of a result, noted only where nothing weightier fills the budget."""

_LATEST_TODO_ITEMS = 8


@dataclass(frozen=True)
class Note:
    """Something to keep: its section, its text, the message it comes from, how much it matters."""

    section: str
    text: str
    message: int
    weight: float


def notes(utterances: list[Utterance]) -> list[Note]:
    """Return the notes of a conversation, the weightiest first, equal ones in their order."""
    segments = cut(utterances).segments
    frequency = Counter(term for segment in segments for term in set(terms(segment.text)))
    size = max(len(utterances), 1)
    by_message: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.kind != "called":
            by_message.setdefault(segment.message, []).append(segment)
    found: list[Note] = []
    for position, utterance in enumerate(utterances):
        own = by_message.get(position, [])
        place = position / size
        if utterance.role == "user":
            found.extend(_of_user(own, place))
        elif utterance.role == "assistant":
            found.extend(_of_assistant(own, place))
            found.extend(_todos(utterance, place, position))
        elif utterance.role == "tool":
            found.extend(_of_result(own, place))
    weighed = [
        Note(n.section, n.text, n.message, n.weight + _richness(n.text, frequency)) for n in found
    ]
    weighed.extend(_of_files(file_actions(utterances)))
    return sorted(_distinct(weighed), key=lambda note: -note.weight)


def _worth(text: str) -> bool:
    return len(text) >= (_LEAST_CHARACTERS_WIDE if is_wide(text) else _LEAST_CHARACTERS)


def _of_user(segments: list[Segment], place: float) -> Iterator[Note]:
    for segment in segments:
        text = beginning(segment.text, _LONGEST).lstrip("-* ")
        carried = section_of(segment.title) if segment.title else None
        if not _worth(text) or text.startswith(("#", "[")):
            continue
        if carried is not None:
            yield Note(carried, text, segment.message, 2.4)
        elif lexicon.sought("constraint").search(text):
            yield Note("constraints", text, segment.message, 2.6)
        else:
            weight = 2.0 + (0.3 if segment.line == 0 else 0) + 0.2 * place
            yield Note("intent", text, segment.message, weight)


def _of_assistant(segments: list[Segment], place: float) -> Iterator[Note]:
    for segment in segments:
        text = beginning(segment.text, _LONGEST).lstrip("-* ")
        if not _worth(text) or text.startswith("#"):
            continue
        reason = lexicon.sought("reason").search(text) is not None
        if reason or lexicon.sought("decision").search(text):
            yield Note("decisions", text, segment.message, 1.2 + (0.4 if reason else 0))
        elif lexicon.cue("error").search(text):
            yield Note("problems", text, segment.message, 1.1)
        elif place > _LATE and lexicon.sought("open").search(text):
            yield Note("next_steps", text, segment.message, 1.2 + place)
        else:
            telling = _DIGITS.search(text) or _NAME.search(text)
            weight = (0.7 if telling else 0.2) + 0.5 * place
            yield Note("state", text, segment.message, weight)


def _of_result(segments: list[Segment], place: float) -> Iterator[Note]:
    problems = [s for s in segments if _ERROR.search(s.text)]
    for segment in problems[-_PROBLEMS_PER_RESULT:]:
        yield Note("problems", beginning(segment.text, _LONGEST), segment.message, 0.8)
    outcomes = [s for s in segments if _OUTCOME.search(s.text) and s not in problems]
    for segment in outcomes[-_OUTCOMES_PER_RESULT:]:
        yield Note("state", beginning(segment.text, _LONGEST), segment.message, 0.5 + 0.6 * place)
    for segment in segments[:_LINES_PER_RESULT]:
        if _worth(segment.text) and segment not in problems and segment not in outcomes:
            yield Note("state", beginning(segment.text, _LONGEST), segment.message, 0.1 * place)


def _todos(utterance: Utterance, place: float, position: int) -> Iterator[Note]:
    """Yield the unfinished items of a to-do list that was written by a tool call."""
    for call in utterance.calls:
        for items in call.arguments.values():
            for item in items[-_LATEST_TODO_ITEMS:] if isinstance(items, list) else []:
                if not isinstance(item, dict):
                    continue
                values = [text for _key, text in leaves(item)]
                if any(_PENDING.match(value) for value in values):
                    text = beginning(max(values, key=len), _LONGEST)
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
        yield Note("files", beginning(text, _LONGEST), done[-1].message, 1.8 + 0.1 * len(done))


def _richness(text: str, frequency: Counter[str]) -> float:
    """Return up to 1 for what cannot be guessed: numbers, names, words that occur seldom."""
    rare = sum(1 for term in set(terms(text)) if frequency[term] <= _RARE)
    return (
        0.25 * (_DIGITS.search(text) is not None)
        + 0.25 * (_NAME.search(text) is not None)
        + min(0.5, 0.06 * rare)
    )


def _distinct(items: list[Note]) -> list[Note]:
    """Return the notes without later repetitions of the same text in the same section."""
    seen: set[tuple[str, str]] = set()
    result = []
    for note in items:
        key = (note.section, " ".join(note.text.casefold().split()))
        if key not in seen:
            seen.add(key)
            result.append(note)
    return result
