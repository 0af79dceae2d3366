"""The authorization server: the rules of OAuth 2.0, without SQL and without a web framework."""
