"""Jobs that cron runs; each takes a connection and the settings and returns what it did."""
