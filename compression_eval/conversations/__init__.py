"""Read what agents leave on disk, and scrub it."""
