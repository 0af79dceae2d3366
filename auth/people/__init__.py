"""Who signs in: passwords, the slowing down of guesses, browser sessions."""
