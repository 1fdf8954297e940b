"""Scripted models and a small fixture, as the end-to-end tests have them."""

from tests.e2e.conftest import _apart, scripts, tiny

__all__ = ["_apart", "scripts", "tiny"]
