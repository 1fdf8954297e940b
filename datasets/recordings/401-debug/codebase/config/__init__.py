"""Settings of the service; durations are in seconds throughout."""
