"""Request middleware, outermost first; see chain.py for the order."""
