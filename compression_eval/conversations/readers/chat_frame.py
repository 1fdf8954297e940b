"""What stands around the messages of a chat file: model, tools, and what a fixture says."""

from typing import Any, Literal, get_args

from compression_eval.conversations.drafts import Compaction, Conversation, Draft
from compression_eval.conversations.fields import count_of, list_of, text_of
from compression_eval.conversations.ledger import Ledger, Line
from compression_eval.conversations.readers.chat_messages import MessageReader
from compression_eval.conversations.readers.tool_schemas import tool_definitions
from compression_eval.conversations.readers.values import origin

_Kind = Literal["summary", "clear", "opaque"]

_SESSION_KEYS = ("session_id", "conversation_id", "thread_id", "id", "name")

_NOT_CARRIED = ("notes", "language", "task_type", "cuts", "description", "truncated_to", "source")
"""Fields of a fixture that a person wrote; they are given again where the import is written."""


def take_frame(
    conversation: Conversation,
    line: Line,
    frame: dict[str, Any],
    messages: list[Draft | None],
) -> None:
    """Take what an object with messages says beside them.

    Args:
        conversation: To add it to.
        line: The object's line, which is settled here.
        frame: The object.
        messages: The drafts of its messages, in their order.
    """
    line.skip("what stands around the messages, which are entered one by one")
    conversation.session = next(
        (text for key in _SESSION_KEYS if (text := text_of(frame, key))), ""
    )
    conversation.model = text_of(frame, "model")
    conversation.context_length = count_of(frame, "context_length") or None
    functions = [{"type": "function", "function": item} for item in list_of(frame, "functions")]
    conversation.tools, without = tool_definitions([*list_of(frame, "tools"), *functions])
    if without:
        conversation.caveats.append(f"{without} tools are named without a schema")
    for key in _NOT_CARRIED:
        if frame.get(key):
            line.leave_out(key, "of a fixture; it is set anew where the import is written")
    earlier = text_of(frame.get("source"), "origin")
    if earlier:
        conversation.origin = origin(conversation.origin, "from", earlier)
    for value in list_of(frame, "recorded_compactions"):
        compaction = _compaction(value, messages)
        if compaction is None:
            line.leave_out("recorded compaction", "its cut or kind is none that a fixture can have")
        else:
            conversation.compactions.append(compaction)


def _compaction(value: Any, messages: list[Draft | None]) -> Compaction | None:
    """Return a compaction that a fixture has recorded."""
    cut = count_of(value, "cut")
    kind: _Kind | None = next((k for k in get_args(_Kind) if text_of(value, "kind") == k), None)
    if not cut or cut > len(messages) or ("kind" in value and kind is None):
        return None
    return Compaction(
        after=next((draft for draft in reversed(messages[:cut]) if draft is not None), None),
        kind=kind or "summary",
        trigger=text_of(value, "trigger"),
        summary=text_of(value, "summary") or None,
        tokens_before=count_of(value, "tokens_before"),
        tokens_after=count_of(value, "tokens_after"),
        state=_state(value["state"], messages) if isinstance(value.get("state"), list) else None,
    )


def _state(values: list[Any], messages: list[Draft | None]) -> list[Draft]:
    """Return the messages of a state: those of the conversation are given by their index."""
    scratch = Conversation(format="", origin="", session="", ledger=Ledger())
    reader = MessageReader(scratch)
    state: list[Draft] = []
    for value in values:
        if isinstance(value, dict):
            reader.read(Line("", ""), value)
            found = reader.by_place[-1]
        else:
            known = isinstance(value, int) and 0 <= value < len(messages)
            found = messages[value] if known else None
        if found is not None:
            state.append(found)
    return state
