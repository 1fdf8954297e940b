"""Bottle numbers.

The lab's scanner pads every number with zeros to eight digits (ADR 0009), the truck units send
what is printed on the bottle.
"""


class LabelError(ValueError):
    """A label that is no bottle number."""


def normalise(label: str) -> str:
    """Return a label of a lab file as the truck unit would have sent it."""
    text = label.strip()
    if not text.isdigit():
        raise LabelError(f"{label!r}: not a bottle number")
    return text.lstrip("0")


def normalize_label(label: str) -> str:
    """Return a label for a text message: in groups, for people to read out."""
    text = label.strip()
    return f"{text[:-3]} {text[-3:]}"
