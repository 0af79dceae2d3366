"""What accounts are expected to hold, as it is told."""
