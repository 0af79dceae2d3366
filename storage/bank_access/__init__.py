"""Access to banks: sealing keys, sealed secrets, attempts to connect a bank, and counts of how often a bank was
asked."""
