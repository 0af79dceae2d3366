"""The schema of the store, step by step: numbered SQL files, each of which runs once."""
