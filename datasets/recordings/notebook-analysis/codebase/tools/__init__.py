"""Tools for notebooks and data files."""
