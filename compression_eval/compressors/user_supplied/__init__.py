"""Compressors of the user: ``module:name``, ``path/file.py@name``, and any command."""
