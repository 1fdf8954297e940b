"""Calibration of graders: how far they are off on answers with known scores."""
