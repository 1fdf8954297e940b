"""Texts: what they say in any spelling, and how they are shown without power over the page."""
