"""Weighbridges: which compartment may be unloaded."""

VERSION = "4.12.0"
