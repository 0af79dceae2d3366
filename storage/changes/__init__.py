"""What follows a commit: changes of a user's data since a client last asked, first answers; and the incarnation of the
store to which states belong."""
