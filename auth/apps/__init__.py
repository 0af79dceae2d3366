"""The apps that ask for access: registration, and where they may be sent back to."""
