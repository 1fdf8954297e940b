"""Tools with which a model may look at the history and the code base as they were at a cut."""
