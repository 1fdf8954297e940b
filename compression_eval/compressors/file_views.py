"""The files that a conversation read or changed last, with what it shows of their contents.

There is no file system to read them from: a fixture is a conversation and nothing else. What stands
here is what the agent itself saw or wrote, with its later edits carried out where that is certain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageTool

from compression_eval.compressors.file_calls import FileCall, file_call

_NUMBERED = re.compile(r" *\d+(?:\t|→|  |: |\| ?)(.*)")


@dataclass(frozen=True)
class FileView:
    """What is known of a file's content."""

    path: str
    text: str
    exact: bool = True
    """Whether this is the whole file as it is now, as far as the conversation tells."""


def file_views(messages: Sequence[ChatMessage], earlier: Sequence[FileView] = ()) -> list[FileView]:
    """Return the files that were read, written or edited, the last one touched first.

    Args:
        messages: The conversation.
        earlier: What was known before it, oldest first.
    """
    views = {view.path: view for view in earlier}
    made: dict[str, FileCall] = {}
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            for call in message.tool_calls or []:
                if found := file_call(call):
                    made[call.id] = found
        elif isinstance(message, ChatMessageTool) and message.error is None:
            found = made.pop(message.tool_call_id or "", None)
            if found is not None:
                # Taken out first, so that the last file touched stands last.
                views[found.path] = _after(found, views.pop(found.path, None), message.text)
    return [view for view in reversed(views.values()) if view.text.strip()]


def _after(call: FileCall, known: FileView | None, result: str) -> FileView:
    """Return what is known of a file after a call."""
    if call.kind == "write" and call.content is not None:
        return FileView(call.path, call.content)
    if call.kind == "read":
        text = _unnumbered(result)
        if call.partial and known is not None and known.exact and text in known.text:
            return known
        return FileView(call.path, text, exact=not call.partial)
    if known is None:
        return FileView(call.path, result, exact=False)
    text = known.text
    for old, new in call.replacements:
        if text.count(old) != 1:
            return FileView(call.path, known.text, exact=False)
        text = text.replace(old, new)
    return FileView(call.path, text, exact=known.exact and bool(call.replacements))


def _unnumbered(text: str) -> str:
    """Return a text without the line numbers that a tool put before every line, if it did."""
    lines = text.splitlines()
    found = [_NUMBERED.fullmatch(line) for line in lines]
    if not lines or not all(found):
        return text
    return "\n".join(match[1] for match in found if match)
