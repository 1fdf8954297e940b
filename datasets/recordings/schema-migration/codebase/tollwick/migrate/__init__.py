"""Migrations: SQL files in order, each with a way back."""
