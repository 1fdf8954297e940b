"""Procedures, one module for each kind of instrument. Loaded by name (config/procedures.json)."""
