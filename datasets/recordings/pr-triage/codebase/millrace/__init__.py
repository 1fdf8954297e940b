"""Gateway between chat platforms and bots."""

__version__ = "0.19.2"
