"""Share one state among its probes and put each probe to the model."""
