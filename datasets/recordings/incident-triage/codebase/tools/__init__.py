"""Tools for people on call."""
