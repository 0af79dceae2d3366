"""What an operation reads of a user: from memory where it is kept, else from the store, in the same words."""
