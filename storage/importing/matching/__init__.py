"""Finds the stored booking that an incoming one is, if any: by keys, counts, and likeness of texts."""
