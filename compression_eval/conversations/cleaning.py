"""Text that can be written as UTF-8."""


def clean(text: str) -> str:
    """Return text that can be written as UTF-8: halves of surrogate pairs become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
