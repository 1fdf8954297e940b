"""Sign-in: credentials, tokens and the login controller."""
