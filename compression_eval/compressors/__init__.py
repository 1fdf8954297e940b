"""Every strategy by name, and the state that is left after it."""
