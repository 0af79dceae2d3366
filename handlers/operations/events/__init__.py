"""What happens to a user's data, told to whoever listens."""
