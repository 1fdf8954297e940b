"""For developers; nothing in the service imports it."""
