"""What people are told, and what has become of it."""
