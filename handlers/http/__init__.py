"""The loop over a contract: from the socket to an operation and back. It knows no store."""
