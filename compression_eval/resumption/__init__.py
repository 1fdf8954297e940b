"""Going on with the work from a compressed state, in a sandbox."""
