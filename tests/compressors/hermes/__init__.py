"""Tests of the strategy that runs Hermes."""
