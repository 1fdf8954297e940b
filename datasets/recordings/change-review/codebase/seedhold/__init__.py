"""Stock, requests and tests of a seed bank."""
