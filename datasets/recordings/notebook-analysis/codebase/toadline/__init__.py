"""Counts of amphibians at the K41."""
