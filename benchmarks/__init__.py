"""Measurements, run by hand: ratios taken in one run. See docs/performance.md."""
