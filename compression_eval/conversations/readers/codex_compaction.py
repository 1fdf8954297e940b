"""What Codex went on with after a compaction."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import text_of
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.codex_marks import begins, marks
from compression_eval.conversations.readers.responses_items import ItemReader

KEPT_TOKENS = 20_000
"""How much of the user's messages Codex keeps where it summarises by itself."""

BYTES_PER_TOKEN = 4
"""By which Codex estimates them."""

_Key = tuple[str, str, tuple[str, ...], str | None]


def compaction_of(
    payload: dict[str, Any],
    conversation: Conversation,
    *,
    user: Collection[Draft],
    summary: str,
    line: Line,
) -> Compaction:
    """Return the compaction that a line stands for.

    Args:
        payload: Of the line.
        conversation: As far as it has been read.
        user: Messages that the user wrote.
        summary: The summary that the model gave just before; empty if none was seen.
        line: Where what cannot be read is entered.
    """
    after = conversation.drafts[-1] if conversation.drafts else None
    message = text_of(payload, "message") or summary
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        state = _rebuilt(conversation, user, message) if message else None
        if message:
            conversation.caveats.append(
                "what was kept at a compaction is not in the file; it was worked out by the rule "
                f"that Codex follows: the user's last {KEPT_TOKENS:,} tokens and the summary"
            )
        return Compaction(
            after, "summary" if message else "opaque", summary=message or None, state=state
        )
    replayed = _replayed(history, line)
    message = message or next(
        (draft.text for draft in replayed if begins(draft, marks().summary_start)), ""
    )
    if not message:
        conversation.caveats.append("the summary of a compaction cannot be read")
    return Compaction(
        after,
        "summary" if message else "opaque",
        summary=message or None,
        state=with_originals(replayed, conversation),
    )


def _replayed(history: list[Any], line: Line) -> list[Draft]:
    """Return the messages of a replacement history."""
    scratch = Conversation(format="", origin="", session="", ledger=Ledger())
    reader = ItemReader(scratch)
    for item in history:
        entry = Line("", "")
        reader.read(entry, item)
        if entry.unknown:
            line.leave_out("item of the kept history", entry.reason or "")
        for part, reason in entry.left_out:
            line.leave_out(part, reason)
    return [draft for draft in scratch.drafts if draft.calls or draft.text or draft.content]


def _key(draft: Draft) -> _Key:
    return draft.role, draft.text, tuple(call.id for call in draft.calls), draft.call_id


def with_originals(replayed: Sequence[Draft], conversation: Conversation) -> list[Draft]:
    """Put the conversation's own messages in the place of their copies.

    Of several that are the same, the last ones are taken, as a kept tail has them.
    """
    originals: dict[_Key, list[Draft]] = defaultdict(list)
    for draft in conversation.drafts:
        originals[_key(draft)].append(draft)
    found: list[Draft] = []
    block: list[Draft] = []
    for draft in reversed(replayed):
        block.append(draft)
        if draft.role != "tool":
            # Calls and their results are kept together or made anew together.
            same = [originals[_key(part)].pop() for part in block if originals[_key(part)]]
            found.extend(same if len(same) == len(block) else block)
            block = []
    return [*reversed(block), *reversed(found)]


def _rebuilt(conversation: Conversation, user: Collection[Draft], summary: str) -> list[Draft]:
    """Return what Codex keeps: the user's messages, newest first, and the summary behind them."""
    room = KEPT_TOKENS
    kept: list[Draft] = []
    for draft in reversed(conversation.drafts):
        if draft not in user:
            continue
        size = -(-len(draft.text.encode(errors="replace")) // BYTES_PER_TOKEN)
        if size > room:
            if room:
                kept.append(Draft("user", [_shortened(draft.text, room)]))
            break
        kept.append(draft)
        room -= size
    return [*reversed(kept), Draft("user", [summary])]


def _shortened(text: str, tokens: int) -> str:
    """Cut the middle out of a text."""
    data = text.encode(errors="replace")
    half = tokens * BYTES_PER_TOKEN // 2
    gone = (len(data) - 2 * half) // BYTES_PER_TOKEN
    head = data[:half].decode(errors="ignore")
    tail = data[-half:].decode(errors="ignore")
    return head + marks().shortened.replace("{tokens}", str(gone)) + tail
