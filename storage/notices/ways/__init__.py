"""How people want to be told: their settings, their addresses, and what was sent there."""
