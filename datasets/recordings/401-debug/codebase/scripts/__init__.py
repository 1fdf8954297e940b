"""Diagnostics that run against the in-process service."""
