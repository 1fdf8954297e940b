"""Content of OpenAI messages, chat and Responses alike: texts, images and what is left out."""

from typing import Any

from compression_eval.conversations.drafts import Image
from compression_eval.conversations.fields import as_text, label, mapping_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.values import leave_out_thinking

_TEXTS = ("text", "input_text", "output_text", "summary_text")
_IMAGES = ("image_url", "input_image", "computer_screenshot", "image")
_THINKING = ("reasoning", "thinking", "reasoning_text")
_ATTACHED = {
    "input_file": "[an attached file]",
    "file": "[an attached file]",
    "input_audio": "[sound]",
}


def content_of(value: Any, line: Line) -> list[str | Image]:
    """Return texts and images in their order.

    Args:
        value: A text, a list of parts, or nothing.
        line: Where what is not carried over is entered.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return [as_text(value)]
    found: list[str | Image] = []
    for part in value:
        piece = _part(part, line)
        if piece is not None:
            found.append(piece)
    return found


def image_of(url: str) -> Image:
    """Return the image at an address; its type is known if the address holds it."""
    media_type = ""
    if url.startswith("data:"):
        media_type = url[len("data:") : 100].partition(",")[0].partition(";")[0]
    return Image(media_type=media_type, url=url)


def _part(part: Any, line: Line) -> str | Image | None:
    if isinstance(part, str):
        return part
    kind = text_of(part, "type")
    if kind in _TEXTS:
        return text_of(part, "text")
    if kind in _IMAGES:
        return image_of(_address(part))
    if kind == "refusal":
        return text_of(part, "refusal")
    return _left_out(part, kind, line)


def _left_out(part: Any, kind: str, line: Line) -> str | None:
    """Say what is not carried over; return the text that stands for it, if any."""
    if kind in _THINKING:
        leave_out_thinking(line)
    elif kind in _ATTACHED:
        line.leave_out(label(kind), "attached files and sound are not carried over")
        return _ATTACHED[kind]
    elif kind == "encrypted_content":
        line.leave_out("encrypted content", "it cannot be read")
    else:
        line.leave_out(f"part {label(kind)}", "unknown kind of content; its text, if any, is kept")
        return text_of(part, "text") or None
    return None


def _address(part: Any) -> str:
    """Return an image's address, which stands in the part or one level deeper."""
    nested = mapping_of(part, "image_url")
    return text_of(nested, "url") or text_of(part, "image_url") or text_of(part, "url")
