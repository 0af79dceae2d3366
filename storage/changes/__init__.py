"""What changed of a user's data since a client asked last, and which life of the store that is of."""
