"""Storage places for keys."""
