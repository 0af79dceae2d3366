"""Signing in: passwords, second factors, limits on guessing, and browser sessions."""
