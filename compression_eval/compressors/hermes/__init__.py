"""Hermes' ``ContextCompressor``, unmodified, in an interpreter of its own."""
