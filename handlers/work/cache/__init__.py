"""The data of a user that operations read: from memory where they are cached, else from the store, by the same
methods."""
