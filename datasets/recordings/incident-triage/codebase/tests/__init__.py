"""Tests of tankline and its tools."""
