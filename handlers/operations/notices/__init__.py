"""What people are told: the list of it, and what they do with it."""
