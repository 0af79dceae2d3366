"""What an operation reads of a user: from memory where it is cached, else from the store, by the same methods."""
