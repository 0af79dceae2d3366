"""The HTTP loop over a contract, from the socket to an operation and back; it knows nothing of the store."""
