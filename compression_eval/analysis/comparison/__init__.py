"""Compare two arms: what differs, by how much, and whether it is more than noise."""
