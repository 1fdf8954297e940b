"""One file per format of recorded conversations."""
