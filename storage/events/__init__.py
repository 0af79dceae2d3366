"""Events: what happened to a user's data, kept for clients that listen."""
