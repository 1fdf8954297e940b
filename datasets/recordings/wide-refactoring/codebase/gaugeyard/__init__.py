"""Work orders, certificates and recalls of a calibration laboratory."""

__version__ = "4.6.0"
