"""Summaries made of a conversation's own sentences, as free text or as typed operations."""

import json
from typing import Any

from compression_eval.offline import lexicon
from compression_eval.offline.phrases import SECTIONS, phrase
from compression_eval.offline.question import content_terms
from compression_eval.offline.reading import Utterance, from_records
from compression_eval.offline.salience import Note, notes
from compression_eval.offline.segments import beginning
from compression_eval.offline.tokens import estimate_tokens, terms

DEFAULT_BUDGET = 1_200
"""Tokens of a summary where the request names no budget."""

_SHARES = {
    "intent": 0.2,
    "constraints": 0.15,
    "files": 0.15,
    "decisions": 0.18,
    "state": 0.12,
    "problems": 0.1,
    "next_steps": 0.1,
}
_LEAST_NEW = 0.35
"""Share of a budget open to new notes though the current summary fills it: code evicts then."""

_SIMILAR = 0.6
_OVERHEAD = 3
"""Tokens of a list mark and a line break."""

_HEADING = 6
_FOCUS = 1.5


def summarise(history: list[Utterance], records: list[dict[str, Any]]) -> str:
    """Return a Markdown summary of the messages in a request, else of the history before it.

    Args:
        history: The messages before the request.
        records: The JSON Lines of the request: messages, budget, focus topic, earlier summary.
    """
    inside = from_records(records)
    utterances = [*_previous(records), *(inside or history)]
    budget = budget_of(records)
    like = "\n".join(u.text for u in utterances if u.role == "user")[:2_000]
    found = _focused(notes(utterances), records)
    chosen = within(found, budget - _HEADING * len(SECTIONS))
    blocks = []
    for section in SECTIONS:
        lines = [f"- {note.text}" for note in chosen if note.section == section]
        body = "\n".join(lines) or phrase("empty", like)
        blocks.append(f"## {phrase(section, like)}\n{body}")
    return "\n\n".join(blocks)


def operations(records: list[dict[str, Any]]) -> str:
    """Return the reply to a request for typed operations on an anchored summary, as JSON."""
    current = _current(records)
    budget = budget_of(records)
    used = sum(estimate_tokens(text) for entries in current.values() for _, text in entries)
    room = max(budget - used, int(_LEAST_NEW * budget)) - _HEADING * len(SECTIONS)
    utterances = from_records(records)
    result: list[dict[str, str]] = []
    touched: set[str] = set()
    for note in within(_focused(notes(utterances), records), room):
        operation = _operation(note, current.get(note.section, []), touched)
        if operation is not None:
            result.append(operation)
    result.extend(_closings(current.get("next_steps", []), utterances, touched))
    return json.dumps({"operations": result}, ensure_ascii=False)


def _focused(items: list[Note], records: list[dict[str, Any]]) -> list[Note]:
    """Return the notes with those on the focus topic of a request, if it has one, moved up."""
    topic = next((text for r in records if isinstance(text := r.get("focus_topic"), str)), "")
    wanted = set(content_terms(topic))
    if not wanted:
        return items
    return sorted(
        items, key=lambda note: -note.weight - _FOCUS * bool(wanted & set(terms(note.text)))
    )


def budget_of(records: list[dict[str, Any]]) -> int:
    """Return the budget that a request states, in tokens; the default if it states none."""
    for record in records:
        budget = record.get("budget_tokens")
        if isinstance(budget, int) and budget > 0:
            return budget
    return DEFAULT_BUDGET


def within(items: list[Note], budget: int) -> list[Note]:
    """Return the notes that fit a budget of tokens, in the order of the conversation.

    Every section first gets its share, so that a talkative one cannot crowd out the others; what
    is left goes to the weightiest of the rest.
    """
    left = {section: int(share * budget) for section, share in _SHARES.items()}
    chosen: list[Note] = []
    rest: list[Note] = []
    for note in items:
        cost = estimate_tokens(note.text) + _OVERHEAD
        if cost <= left[note.section]:
            left[note.section] -= cost
            chosen.append(note)
        else:
            rest.append(note)
    spare = sum(left.values())
    for note in rest:
        cost = estimate_tokens(note.text) + _OVERHEAD
        if cost <= spare:
            spare -= cost
            chosen.append(note)
    return sorted(chosen, key=lambda note: note.message)


def _previous(records: list[dict[str, Any]]) -> list[Utterance]:
    """Return an earlier summary that a request holds as text, as a user's first message."""
    for record in records:
        for key in ("earlier_summary", "previous_summary", "current_summary"):
            text = record.get(key)
            if isinstance(text, str) and text.strip():
                return [Utterance(-1, "user", text)]
    return []


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
    """Return the operation that brings a note in; None where an entry says the same already."""
    for key, text in entries:
        if text.strip() == note.text.strip():
            return None
        if key in touched or not _replaces(note, text):
            continue
        touched.add(key)
        merged = _merged_file(text, note.text) if note.section == "files" else note.text
        return {"op": "supersede", "id": key, "text": merged}
    return {"op": "add", "section": note.section, "text": note.text}


def _replaces(note: Note, text: str) -> bool:
    """Tell whether a note is about what an entry is about: same file, or mostly same words."""
    if note.section == "files":
        return note.text.split(": ", 1)[0] == text.split(": ", 1)[0]
    ours, theirs = set(terms(note.text)), set(terms(text))
    return len(ours & theirs) >= _SIMILAR * max(len(ours | theirs), 1)


def _merged_file(old: str, new: str) -> str:
    """Return an entry that keeps what was known of a file and adds what happened since."""
    return f"{old}; then {new.split(': ', 1)[-1]}"


def _closings(
    entries: list[tuple[str, str]], utterances: list[Utterance], touched: set[str]
) -> list[dict[str, str]]:
    """Return one closing for each open step that a later sentence reports as done."""
    result = []
    sentences = [
        line.strip()
        for utterance in utterances
        if utterance.role in ("assistant", "user")
        for line in utterance.text.splitlines()
        if lexicon.state("done").search(line)
    ]
    for key, text in entries:
        if key in touched:
            continue
        step = set(terms(text))
        for sentence in sentences:
            if step and len(step & set(terms(sentence))) >= _SIMILAR * len(step):
                result.append({"op": "close", "id": key, "text": beginning(sentence, 200)})
                break
    return result
