"""Looks at what a user should be told, after each import and on the day on which something is due."""
