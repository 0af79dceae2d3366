"""Searches: their results, the sums of these by groups, and the periods that they are compared with."""
