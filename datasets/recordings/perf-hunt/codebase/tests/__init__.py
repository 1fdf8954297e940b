"""Tests: ``python -m unittest -q``."""
