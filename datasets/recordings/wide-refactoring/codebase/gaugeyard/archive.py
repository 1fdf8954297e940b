"""The archive: one JSON line for each record, written since 2019, kept for 15 years.

A record names its class, so that what was written by an old version can be read by a new one.
"""

import dataclasses
import importlib
import json
from decimal import Decimal

from gaugeyard.common import CalError


def _plain(value):
    if isinstance(value, Decimal):
        return str(value)
    return value if isinstance(value, (int, str, type(None))) else str(value)


def dump(record):
    """Return a record as one line."""
    cls = type(record)
    fields = {}
    for each in dataclasses.fields(record):
        value = getattr(record, each.name)
        fields[each.name] = [_plain(item) for item in value] if isinstance(value, list) else _plain(value)
    return json.dumps({"class": f"{cls.__module__}.{cls.__qualname__}", **fields}, sort_keys=True)


def load(line):
    """Return (class, fields) of a line; CalError if its class is not known."""
    fields = json.loads(line)
    module, _, name = fields.pop("class").rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise CalError(f"archive: no class {module}.{name}") from error
    return cls, fields


def load_file(path):
    return [load(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
