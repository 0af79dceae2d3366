"""Events on recurring payments."""
