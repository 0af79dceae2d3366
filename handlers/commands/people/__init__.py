"""Commands on what is between people."""
