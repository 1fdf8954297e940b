"""Sweeps: many arms over the same fixtures, planned, estimated, run, and resumed after a kill."""
