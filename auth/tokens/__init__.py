"""Credentials of apps: codes, access and refresh tokens, the grants they belong to, and the keys that sign tokens."""
