"""Requests, responses and the in-process dispatcher."""
