"""The steps that a request passes, the last of which calls its operation."""
