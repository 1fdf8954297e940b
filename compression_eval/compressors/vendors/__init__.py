"""The model vendors' own compaction, through their own packages."""
