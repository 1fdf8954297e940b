"""Users and sessions."""
