"""Changes of a user's data since a client last asked, and the incarnation of the store in which they count."""
