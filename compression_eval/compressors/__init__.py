"""Every strategy by name, and the state that it leaves."""
