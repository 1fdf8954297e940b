"""The items of a return, ``PET05:3;GLS05:2`` in the old schema."""

from tollwick.errors import BadItems


def parse_items(text: str) -> list[tuple[str, int]]:
    """Return pairs of SKU and number, in the order of the text."""
    pairs = []
    for part in filter(None, text.split(";")):
        sku, _, number = part.partition(":")
        if not number.isdigit():
            raise BadItems(f"items {text!r}: {part!r} is not SKU:NUMBER")
        pairs.append((sku, int(number)))
    return pairs


def format_items(pairs: list[tuple[str, int]]) -> str:
    """Return pairs as text."""
    return ";".join(f"{sku}:{number}" for sku, number in pairs)
