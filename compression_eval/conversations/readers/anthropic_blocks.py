"""Content blocks of Anthropic messages, wherever they are stored: texts, calls, results, images."""

from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, label, list_of, mapping_of, text_of
from compression_eval.conversations.ledger import Line

_THINKING = ("thinking", "redacted_thinking")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_ENCRYPTED = ("encrypted_content", "encrypted_index", "encrypted_stdout")
_MARKS = {
    *_THINKING,
    *_CALLS,
    "tool_result",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "mcp_tool_result",
}


def is_anthropic_block(block: Any) -> bool:
    """Return whether a block of content is of a kind that only Anthropic's form has."""
    kind = text_of(block, "type")
    if kind in ("image", "document"):
        return bool(mapping_of(block, "source"))
    return kind in _MARKS


class AssistantTurn:
    """The messages that one assistant message of the API becomes.

    As a rule it is one. Tools that the server runs put their results into the same API message;
    a fixture holds each result behind its call, so that what follows is a message of its own.
    """

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self._calls: set[str] = set()

    def add(self, content: Any, line: Line, *, repeats: bool = False) -> list[Draft]:
        """Add blocks and return the messages that this opened.

        Args:
            content: A text or a list of blocks.
            line: Where what is not carried over is entered; it became or was merged into every
                message that a block of it went to.
            repeats: Whether texts that the turn already holds are repetitions.
        """
        before = len(self.drafts)
        blocks = content if isinstance(content, list) else [content]
        touched: list[Draft] = []
        for block in blocks:
            draft = self._add(block, line, repeats=repeats)
            if draft is not None and draft not in touched:
                touched.append(draft)
        if not touched:
            touched.append(self._open())
        opened = self.drafts[before:]
        for draft in touched:
            if draft in opened:
                line.became(draft)
            else:
                line.merge(draft)
        return opened

    def _open(self) -> Draft:
        """Return the message that goes on, a new one behind a result."""
        if not self.drafts or self.drafts[-1].role == "tool":
            self.drafts.append(Draft("assistant"))
        return self.drafts[-1]

    def _add(self, block: Any, line: Line, *, repeats: bool) -> Draft | None:
        kind = text_of(block, "type")
        if kind in _THINKING:
            line.leave_out("thinking", "thinking is left out")
            return None
        if kind in _CALLS:
            return self._call(block, line)
        if kind.endswith("_tool_result"):
            result = Draft(
                "tool", _server_result(block, line), call_id=text_of(block, "tool_use_id")
            )
            self.drafts.append(result)
            return result
        content = content_of([block], line)
        if not content:
            return None
        draft = self._open()
        draft.content.extend(part for part in content if not repeats or part not in draft.content)
        return draft

    def _call(self, block: Any, line: Line) -> Draft:
        identifier = text_of(block, "id")
        if identifier and identifier in self._calls:
            return next(
                draft for draft in self.drafts if any(call.id == identifier for call in draft.calls)
            )
        if not identifier:
            line.leave_out("id", "the call has none")
        self._calls.add(identifier)
        draft = self._open()
        arguments = block.get("input")
        draft.calls.append(
            DraftCall(
                identifier, text_of(block, "name"), "" if arguments is None else as_text(arguments)
            )
        )
        return draft


def user_drafts(content: Any, line: Line) -> list[Draft]:
    """Return the messages of a user message: the results of tools first, then what was said.

    Args:
        content: A text or a list of blocks.
        line: Where what is not carried over is entered; it does not become these messages yet.
    """
    results: list[Draft] = []
    said: list[Any] = []
    for block in content if isinstance(content, list) else [content]:
        kind = text_of(block, "type")
        if kind == "tool_result":
            if block.get("is_error") is True:
                line.leave_out(
                    "is_error", "a fixture has no mark for failed calls, only their text"
                )
            identifier = text_of(block, "tool_use_id")
            results.append(
                Draft("tool", content_of(block.get("content"), line), call_id=identifier)
            )
        else:
            said.append(block)
    parts = content_of(said, line)
    if parts or not results:
        return [*results, Draft("user", parts)]
    return results


def content_of(value: Any, line: Line) -> list[str | Image]:
    """Return texts and images in their order.

    Args:
        value: A text, a list of blocks, or nothing.
        line: Where what is not carried over is entered.
    """
    found: list[str | Image] = []
    for block in value if isinstance(value, list) else [value]:
        piece = block if isinstance(block, str) else _piece(block, line)
        if piece:
            found.append(piece)
    return found


def _piece(block: Any, line: Line) -> str | Image | None:
    kind = text_of(block, "type")
    found: str | Image | None = None
    if kind == "text" and isinstance(block.get("text"), str):
        if list_of(block, "citations"):
            line.leave_out("citations", "a fixture holds texts only")
        found = text_of(block, "text")
    elif kind == "image":
        found = _image(mapping_of(block, "source"))
    elif kind == "document":
        found = _document(block, line)
    elif kind == "search_result":
        texts = [part for part in content_of(block.get("content"), line) if isinstance(part, str)]
        found = "\n".join([text_of(block, "title"), text_of(block, "source"), *texts])
    elif kind == "tool_reference":
        found = f"[tool: {text_of(block, 'tool_name')}]"
    elif kind in _THINKING:
        line.leave_out("thinking", "thinking is left out")
    elif block is not None:
        line.leave_out(f"block {label(kind)}", "unknown kind of content")
        line.is_unknown("expected content as text or blocks of a known kind")
        found = text_of(block, "text")
    return found


def _image(source: dict[str, Any]) -> Image:
    media_type = text_of(source, "media_type")
    data = text_of(source, "data")
    if data:
        url = f"data:{media_type};base64,{data}"
        return Image(media_type, url, _decoded_size(data))
    return Image(media_type, text_of(source, "url"))


def _document(block: Any, line: Line) -> str:
    """Return a document's text, or a description where it is not a text."""
    source = mapping_of(block, "source")
    kind = text_of(source, "type")
    heading = [text for key in ("title", "context") if (text := text_of(block, key))]
    if kind == "text":
        return "\n".join([*heading, text_of(source, "data")])
    if kind == "content":
        inner = content_of(source.get("content"), line)
        return "\n".join([*heading, *(part for part in inner if isinstance(part, str))])
    facts = [text_of(source, "media_type") or text_of(source, "url") or "document"]
    if data := text_of(source, "data"):
        facts.append(f"{_decoded_size(data):,} bytes")
    line.leave_out("document", "only texts are carried over; a description stands for it")
    return "\n".join([*heading, f"[document: {', '.join(facts)}]"])


def _decoded_size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4


def _server_result(block: Any, line: Line) -> list[str | Image]:
    """Return the result of a tool that the server ran: texts, or its fields as JSON."""
    content = block.get("content")
    parts = content if isinstance(content, list) else [content]
    if isinstance(content, str) or all(text_of(part, "type") == "text" for part in parts):
        return content_of(content, line)
    return [as_text(_readable(content, line))]


def _readable(value: Any, line: Line) -> Any:
    """Return a result without what only the server can read."""
    if isinstance(value, list):
        return [_readable(item, line) for item in value]
    if not isinstance(value, dict):
        return value
    if any(key in value for key in _ENCRYPTED):
        line.leave_out("encrypted content", "it cannot be read")
    return {key: _readable(item, line) for key, item in value.items() if key not in _ENCRYPTED}
