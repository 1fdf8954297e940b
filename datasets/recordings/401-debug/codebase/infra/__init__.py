"""Clock, Redis stand-in and connection pool."""
