"""Which stored booking an incoming one is, if any: keys, counts, likeness of texts."""
