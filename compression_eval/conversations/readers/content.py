"""Texts and images of a message's content, in the forms of Anthropic, OpenAI, MCP and their kin.

Content is a text, or a list of texts and blocks. The forms share their names, so that one function
reads all of them. What is not carried over is said of the line that contains it.
"""

from collections.abc import Collection, Iterator
from typing import Any

from compression_eval.conversations.drafts import Content, Image, Line, image_at, inline_image
from compression_eval.conversations.fields import Json, label

THINKING = (
    *("thinking", "redacted_thinking", "redactedThinking"),
    *("reasoning", "reasoning_text", "thoughtSignature"),
)
_ATTACHED = {
    "input_file": "[an attached file]",
    "file": "[an attached file]",
    "input_audio": "[sound]",
}


def content_of(value: Any, line: Line, ignored: Collection[str] = ()) -> Content:
    """Return texts and images in their order; blocks of the kinds to be ignored are read elsewhere.

    A block of an unknown kind is left out by name, but for its text.
    """
    found: Content = []
    for block in value if isinstance(value, list) else [value]:
        if isinstance(block, str):
            found.append(block)
        elif block is not None and Json.of(block).text("type") not in ignored:
            found.extend(_pieces(Json.of(block), line))
    return [piece for piece in found if piece]


def _pieces(block: Json, line: Line) -> Iterator[str | Image]:
    match block.text("type"):
        case "text" | "input_text" | "output_text" | "summary_text" if isinstance(
            block.at("text"), str
        ):
            if block.listed("citations"):
                line.leave_out("citations", "a fixture contains texts only")
            yield block["text"]
        case "refusal":
            yield block.text("refusal")
        case "image" | "image_url" | "input_image" | "computer_screenshot":
            yield from _images(block)
        case kind if kind in THINKING:
            line.leave_out_thinking()
        case "document":
            yield _document(block, line)
        case "search_result":
            heading = [block.text("title"), block.text("source")]
            yield "\n".join([*heading, *_texts(block.at("content"), line)])
        case "tool_reference":
            yield f"[tool: {block.text('tool_name')}]"
        case "resource" if block.text("resource", "text"):
            yield block.text("resource", "text")
        case kind if kind in _ATTACHED:
            line.leave_out(label(kind), "attached files and sound are not carried over")
            yield _ATTACHED[kind]
        case "encrypted_content":
            line.leave_out("encrypted content", "it cannot be read")
        case kind:
            line.leave_out(f"block {label(kind)}", "unknown kind of content")
            line.is_unknown("expected content as text or blocks of a known kind")
            yield block.text("text")


def _images(block: Json) -> Iterator[Image]:
    """Yield the image of a block, or all whose addresses it contains."""
    source = block.entry("source") or block
    media_type = source.first("media_type", "mediaType", "mimeType")
    if data := source.text("data"):
        size = _decoded_size(data) if source is not block else None
        yield Image(media_type, inline_image(media_type, data).url, size)
    elif urls := block.listed("image_urls"):
        yield from (image_at(url) for url in urls if isinstance(url, str))
    else:
        url = block.text("image_url", "url") or block.first("image_url", "url")
        yield image_at(url) if url else Image(media_type, source.text("url"))


def _texts(value: Any, line: Line) -> list[str]:
    return [part for part in content_of(value, line) if isinstance(part, str)]


def _document(block: Json, line: Line) -> str:
    """Return a document's text, or a description where it is not a text."""
    source, data = block.entry("source"), block.text("source", "data")
    heading = [text for key in ("title", "context") if (text := block.text(key))]
    match source.text("type"):
        case "text":
            return "\n".join([*heading, data])
        case "content":
            return "\n".join([*heading, *_texts(source.at("content"), line)])
    facts = [source.first("media_type", "url") or "document"]
    facts += [f"{_decoded_size(data):,} bytes"] if data else []
    line.leave_out("document", "only texts are carried over; a description stands for it")
    return "\n".join([*heading, f"[document: {', '.join(facts)}]"])


def _decoded_size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4
