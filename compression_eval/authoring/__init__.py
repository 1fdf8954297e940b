"""Making probes from conversations: generated, checked against them, and qualified by runs."""
