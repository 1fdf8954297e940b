"""What compaction did to recorded sessions: what the agent fetched again afterwards."""
