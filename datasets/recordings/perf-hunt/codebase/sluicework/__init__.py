"""The night run of the Larchmere water works."""
