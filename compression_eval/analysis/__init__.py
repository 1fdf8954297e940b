"""From logs to tables: what people and other programs read of a run."""
