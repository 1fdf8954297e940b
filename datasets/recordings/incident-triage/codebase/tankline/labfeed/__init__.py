"""Results of the labs, attached to pick-ups."""

VERSION = "2.7.1"
