"""The changes of a user's data since a client last asked, and the incarnation of the store to which states belong."""
