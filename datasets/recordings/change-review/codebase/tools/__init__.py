"""Things for developers."""
