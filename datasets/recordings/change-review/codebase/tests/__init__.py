"""Tests; python -m unittest."""
