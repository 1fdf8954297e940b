"""Reach every text of a fixture or a bank, and know where it stands."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args, get_origin

from compression_eval.fixtures.models import IMAGE_DATA, Message, Open, Source, ToolCall

_FIXED: dict[type[Open], tuple[str, ...]] = {
    ToolCall: ("id",),
    Message: ("tool_call_id",),
    Source: ("recorder", "importer", "scrubber", "scrubbing"),
}
"""Fields that name calls, or nothing but this program's own steps."""

Rewrite = Callable[[str, str], str]
"""From a text and the field it stands in to what the text shall be."""
_Models = tuple[type[Open], ...]


def rewritten(data: Any, model: type[Open], rewrite: Rewrite) -> Any:
    """Return a fixture or a bank (as JSON) with every text rewritten.

    What stays is images, numbers, and the fields of the model itself whose words the format sets
    or that name calls. Fields that a model does not know are rewritten whole, keys included.
    """
    return _rewritten(data, (model,), "", rewrite)


def _rewritten(value: Any, models: _Models, where: str, rewrite: Rewrite) -> Any:
    if isinstance(value, str):
        return value if IMAGE_DATA.fullmatch(value) else rewrite(value, where)
    if isinstance(value, list):
        return [_rewritten(item, models, f"{where}[{i}]", rewrite) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known, result = _fields(models), {}
    for key, item in value.items():
        inner = known.get(key, ())
        if inner is not None:
            item = _rewritten(item, inner, f"{where}.{key}".lstrip("."), rewrite)  # noqa: PLW2901
        result[key if key in known else rewrite(key, where)] = item
    return result


@cache
def _fields(models: _Models) -> dict[str, _Models | None]:
    """Return the models inside each known field; None for a field whose words are fixed."""
    return {
        name: None
        if name in _FIXED.get(model, ()) or get_origin(field.annotation) is Literal
        else _models(field.annotation)
        for model in models
        for name, field in model.model_fields.items()
    }


def _models(annotation: Any) -> _Models:
    if isinstance(annotation, type) and issubclass(annotation, Open):
        return (annotation,)
    return tuple(model for inner in get_args(annotation) for model in _models(inner))
