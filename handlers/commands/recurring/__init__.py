"""Commands on a user's recurring payments."""
