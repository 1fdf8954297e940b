"""For developers."""
