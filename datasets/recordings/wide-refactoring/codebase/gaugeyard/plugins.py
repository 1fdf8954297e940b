"""Procedures and rounding rules by name, see docs/adr/0011-procedures-by-name.md."""

import importlib

from gaugeyard import settings
from gaugeyard.common import CalError, warn
from gaugeyard.procedures import generic


def resolve(target):
    """Return what `package.module:name` names."""
    module, _, name = target.partition(":")
    if not name:
        raise CalError(f"not of the form module:name: {target}")
    return getattr(importlib.import_module(module), name)


def procedure(kind, path=None):
    """Return the function that calibrates a kind.

    A procedure that cannot be loaded must not stop the night: the generic one steps in.
    """
    entry = settings.procedures(path).get(kind)
    if entry is None:
        raise CalError(f"no procedure for {kind}")
    try:
        return resolve(entry["run"])
    except (ImportError, AttributeError) as error:
        warn("procedure %s not loaded (%s), generic used", kind, error)
        return generic.run


def rounding(kind, path=None):
    """Return the function that rounds the values of a kind."""
    entry = settings.procedures(path).get(kind, {})
    return resolve(entry.get("rounding", "gaugeyard.common:round_half_even"))
