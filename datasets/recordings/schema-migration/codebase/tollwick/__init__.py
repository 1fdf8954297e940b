"""Back end of the Tollwick bottle-return kiosks."""
