"""Text messages to drivers and farms."""
