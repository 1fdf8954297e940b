"""What the strategies are, as text for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from compression_eval.compressors.spec import Compressor

_COLUMNS = ("name", "calls a model", "state can be read", "takes a target", "parameters")


def takes_target(compressor: Compressor[Any]) -> bool:
    """Return whether the wanted size of the state can be given."""
    return "target_tokens" in compressor.arguments.model_fields


def table(compressors: Iterable[Compressor[Any]]) -> list[str]:
    """Return one line per strategy under a line of heads.

    Args:
        compressors: The strategies, in the order to be shown.
    """
    rows = [_COLUMNS, *(_row(compressor) for compressor in compressors)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in rows
    ]


def details(compressor: Compressor[Any]) -> list[str]:
    """Return a strategy's summary and a line or two for each of its parameters."""
    lines = [f"{compressor.name}: {compressor.summary}"]
    for heads, cell in zip(_COLUMNS[1:-1], _row(compressor)[1:-1], strict=True):
        lines.append(f"  {heads}: {cell}")
    for name, field in compressor.arguments.model_fields.items():
        lines.append(f"  {name}{_default(field)}")
        if field.description:
            lines.append(f"      {' '.join(field.description.split())}")
    return lines


def as_data(compressor: Compressor[Any]) -> dict[str, Any]:
    """Return a strategy as JSON data."""
    return {
        "name": compressor.name,
        "summary": compressor.summary,
        "calls_model": compressor.calls_model,
        "readable": compressor.readable,
        "takes_target": takes_target(compressor),
        "parameters": {
            name: {
                "required": field.is_required(),
                "default": to_jsonable_python(_value(field), fallback=str),
                "description": " ".join((field.description or "").split()),
            }
            for name, field in compressor.arguments.model_fields.items()
        },
    }


def _row(compressor: Compressor[Any]) -> tuple[str, ...]:
    return (
        compressor.name,
        _yes(compressor.calls_model),
        _yes(compressor.readable),
        _yes(takes_target(compressor)),
        ", ".join(_parameters(compressor)) or "-",
    )


def _parameters(compressor: Compressor[Any]) -> Iterator[str]:
    for name, field in compressor.arguments.model_fields.items():
        yield f"{name}{_default(field)}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return " (required)"
    value = _value(field)
    # As it would be written on the command line, which is YAML.
    if value is None:
        return "=null"
    return f"={str(value).lower()}" if isinstance(value, bool) else f"={value}"


def _value(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
