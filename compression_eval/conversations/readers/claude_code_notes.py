"""Attachments of a Claude Code session: which of them the model saw, and as what."""

from typing import Any

from compression_eval.conversations.drafts import Draft, Image
from compression_eval.conversations.fields import as_text, count_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.anthropic_blocks import content_of
from compression_eval.conversations.readers.claude_code_lines import Record
from compression_eval.conversations.readers.claude_code_marks import marks

_INNER = ("file", "content", "text")


def note(item: Record, line: Line) -> Draft | None:
    """Return the message that an attachment was to the model, or settle the line without one.

    What the user typed while the agent worked is a message like any other; what the client added
    is marked as a reminder, so that nobody takes it for the user's words.
    """
    known = marks()
    if item.subtype == "queued_command":
        return _prompt(item, line)
    if item.subtype in known.unseen_attachments:
        line.skip(known.unseen_attachments[item.subtype])
        return None
    if item.subtype not in known.notes:
        line.is_unknown("an attachment of a kind that is not known")
        return None
    attachment = mapping_of(item.value, "attachment")
    event = text_of(attachment, "hookEvent")
    if item.subtype == "hook_success" and event and event not in known.hook_events:
        line.skip("output of a hook that is not handed to the model")
        return None
    pieces = [
        piece for field in known.notes[item.subtype] for piece in _pieces(attachment.get(field))
    ]
    if not pieces:
        line.skip("a note that is worded only when it is sent: the file holds no text of it")
        return None
    texts = [piece for piece in pieces if isinstance(piece, str)]
    images = [piece for piece in pieces if isinstance(piece, Image)]
    reminder = known.reminder.replace("{text}", "\n".join(texts))
    return Draft("user", [reminder, *images], injected=True)


def _prompt(item: Record, line: Line) -> Draft | None:
    prompt = mapping_of(item.value, "attachment").get("prompt")
    if not isinstance(prompt, str | list):
        line.is_unknown("expected the field prompt as text or blocks")
        return None
    mode = text_of(mapping_of(item.value, "attachment"), "commandMode")
    return Draft("user", content_of(prompt, line), injected=mode not in ("", "prompt"))


def _pieces(value: Any) -> list[str | Image]:
    """Return the texts of a field, which may be a list or an object around them."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        return [piece for item in value for piece in _pieces(item)]
    if not isinstance(value, dict) or not value:
        return []
    if text_of(value, "type") == "image":
        file = mapping_of(value, "file")
        media_type, data = text_of(file, "type"), text_of(file, "base64")
        url = f"data:{media_type};base64,{data}" if data else ""
        return [Image(media_type, url, count_of(file, "originalSize"))]
    if set(value) <= {*_INNER, "type"} or isinstance(value.get("file"), dict):
        inner = next((value[key] for key in _INNER if key in value), None)
        return _pieces(inner)
    return [as_text(value)]
