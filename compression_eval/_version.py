"""The package's version, read by the build and by the log."""

__version__ = "0.1.0"
