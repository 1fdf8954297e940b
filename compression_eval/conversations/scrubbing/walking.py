"""Reach every text of a fixture or a bank, and know where it stands."""

from collections.abc import Callable
from functools import cache
from typing import Any

from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Open

_FIXED = frozenset(
    ("role", "type", "tool_call_id", "language", "kind", "trigger", "schema_version")
) | {"scrubber", "scrubbing", "importer", "recorder"}
"""Fields whose words the format sets, or that name nothing but this program's own steps."""

Rewrite = Callable[[str, str], str]
"""From a text and the field it stands in to what the text shall be."""


def rewrite_fixture(data: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a fixture (as JSON) with every text rewritten; ids of calls stay."""
    result: dict[str, Any] = _rewritten(data, "", rewrite, _FIXED | {"id"})
    return result


def rewrite_bank(data: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a bank (as JSON) with every text rewritten."""
    result: dict[str, Any] = _rewritten(data, "", rewrite, _FIXED)
    return result


def _rewritten(value: Any, where: str, rewrite: Rewrite, fixed: frozenset[str]) -> Any:
    if isinstance(value, str):
        return value if value.startswith("data:image/") else rewrite(value, where)
    if isinstance(value, list):
        return [_rewritten(item, f"{where}[{i}]", rewrite, fixed) for i, item in enumerate(value)]
    if isinstance(value, dict):
        known = _known_fields()
        return {
            key if key in known else rewrite(key, where): item
            if key in fixed
            else _member(item, f"{where}.{key}".lstrip("."), rewrite, fixed)
            if key in known
            else _free(item, f"{where}.{key}".lstrip("."), rewrite)
            for key, item in value.items()
        }
    return value


@cache
def _known_fields() -> frozenset[str]:
    """Return the names of all fields of fixtures and banks; what others hold is rewritten whole."""
    models: list[type[Open]] = [ProbeBank, *Open.__subclasses__()]
    return frozenset(name for model in models for name in model.model_fields)


def _member(value: Any, where: str, rewrite: Rewrite, fixed: frozenset[str]) -> Any:
    if where.endswith(".parameters"):
        return _free(value, where, rewrite)
    return _rewritten(value, where, rewrite, fixed)


def _free(value: Any, where: str, rewrite: Rewrite) -> Any:
    """Rewrite nested JSON whose keys are the recorded agent's own."""
    if isinstance(value, str):
        return rewrite(value, where)
    if isinstance(value, list):
        return [_free(item, where, rewrite) for item in value]
    if isinstance(value, dict):
        return {rewrite(key, where): _free(item, where, rewrite) for key, item in value.items()}
    return value
