"""A package named as Hermes names its own."""
