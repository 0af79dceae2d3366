"""What filters find of a user's transactions: rows in pages, and what they add up to."""
