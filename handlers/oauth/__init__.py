"""The OAuth endpoints, and the pages on which people sign in, allow apps and manage their account."""
