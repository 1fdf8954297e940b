"""Whether a text states a fact, and what becomes of it: history, summariser, state, answer."""
