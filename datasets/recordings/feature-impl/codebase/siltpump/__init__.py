"""siltpump moves log records from a spool of segments to a sink, one flush at a time."""
