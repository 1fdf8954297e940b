"""Content of OpenHands messages: texts, and images with several addresses each."""

from typing import Any

from compression_eval.conversations.drafts import Image
from compression_eval.conversations.fields import as_text, list_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import content_of as openai_content
from compression_eval.conversations.readers.openai_content import image_of


def content_of(value: Any, line: Line) -> list[str | Image]:
    """Return texts and images in their order.

    Args:
        value: A text, a part, a list of parts, or nothing.
        line: Where what is not carried over is entered.
    """
    found: list[str | Image] = []
    for part in value if isinstance(value, list) else [value]:
        if text_of(part, "type") == "image":
            found.extend(image_of(as_text(url)) for url in list_of(part, "image_urls"))
        elif part is not None:
            found.extend(openai_content([part], line))
    return found
