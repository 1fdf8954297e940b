"""Compaction that the model vendors offer themselves, through their own packages."""
