"""Messages of Pi sessions, by their role."""

from collections.abc import Callable
from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.values import (
    identifier,
    leave_out_thinking,
    marked,
    without_thinking,
)

ROLES = (
    "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "branchSummary",
    "compactionSummary",
)  # fmt: skip

FAILED = ("error", "aborted")
"""Stop reasons of turns whose calls were not carried out."""


def draft_of(message: dict[str, Any], line: Line) -> Draft | None:
    """Return the message that the model saw; None if it saw none, then the line is settled."""
    make = _MAKERS.get(text_of(message, "role"))
    if make is None:
        line.is_unknown("a message of a role that Pi does not have")
        return None
    return make(message, line)


def summary_draft(summary: str, marker: str) -> Draft:
    """Return the user message in which the agent shows a summary to the model."""
    return Draft("user", [marked(marker, text=summary)], injected=True)


def content_of(value: Any, line: Line) -> list[str | Image]:
    """Return texts and images of a content, a text or a list of blocks."""
    if isinstance(value, str):
        return [value]
    if value is not None and not isinstance(value, list):
        line.is_unknown("expected content that is a text or a list of blocks")
    found: list[str | Image] = []
    for block in value if isinstance(value, list) else []:
        kind = text_of(block, "type")
        if kind == "text":
            found.append(text_of(block, "text"))
        elif kind == "image":
            found.append(_image(block))
        elif kind in ("thinking", "redactedThinking"):
            leave_out_thinking(line)
        elif kind != "toolCall":
            line.leave_out(f"block {label(kind)}", "unknown kind of content")
    return found


def _image(block: Any) -> Image:
    media_type, data = text_of(block, "mimeType"), text_of(block, "data")
    return Image(media_type, f"data:{media_type};base64,{data}" if data else "")


def _user(message: dict[str, Any], line: Line) -> Draft | None:
    return Draft("user", content_of(message.get("content"), line))


def _injected(message: dict[str, Any], line: Line) -> Draft | None:
    return Draft("user", content_of(message.get("content"), line), injected=True)


def _assistant(message: dict[str, Any], line: Line) -> Draft | None:
    content = [
        without_thinking(part, line) if isinstance(part, str) else part
        for part in content_of(message.get("content"), line)
    ]
    blocks = message.get("content")
    calls = [
        DraftCall(identifier(block, "id"), text_of(block, "name"), as_text(block.get("arguments")))
        for block in (blocks if isinstance(blocks, list) else [])
        if text_of(block, "type") == "toolCall"
    ]
    if text_of(message, "errorMessage"):
        line.leave_out("error message", "it was shown to the user, not to the model")
    return Draft("assistant", content, calls)


def _tool_result(message: dict[str, Any], line: Line) -> Draft | None:
    content = content_of(message.get("content"), line)
    return Draft("tool", content, call_id=identifier(message, "toolCallId"))


def _command(message: dict[str, Any], line: Line) -> Draft | None:
    if message.get("excludeFromContext") is True:
        line.skip("a command that the user ran without showing it to the model")
        return None
    output = text_of(message, "output")
    code = message.get("exitCode")
    if isinstance(code, int) and code:
        output = f"{output}\n{marked('exit_code', code=str(code))}"
    text = marked("user_command", command=text_of(message, "command"), text=output)
    return Draft("user", [text])


def _branch_summary(message: dict[str, Any], line: Line) -> Draft | None:
    return _with_summary(message, line, "branch_summary")


def _conversation_summary(message: dict[str, Any], line: Line) -> Draft | None:
    return _with_summary(message, line, "conversation_summary")


def _with_summary(message: dict[str, Any], line: Line, marker: str) -> Draft | None:
    summary = text_of(message, "summary")
    if not summary:
        line.is_unknown("expected a summary")
        return None
    return summary_draft(summary, marker)


_MAKERS: dict[str, Callable[[dict[str, Any], Line], Draft | None]] = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _tool_result,
    "bashExecution": _command,
    "custom": _injected,
    "hookMessage": _injected,
    "branchSummary": _branch_summary,
    "compactionSummary": _conversation_summary,
}
