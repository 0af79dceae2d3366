"""Searches over a user's transactions: the rows that filters match, in pages, and the sums over all of them."""
