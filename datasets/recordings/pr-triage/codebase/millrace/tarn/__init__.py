"""Adapter for the Tarn chat platform."""
