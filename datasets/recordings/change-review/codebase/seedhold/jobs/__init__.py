"""Jobs that run at night."""
