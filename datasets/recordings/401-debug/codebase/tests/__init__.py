"""Test suite; run with `python -m tests`."""
