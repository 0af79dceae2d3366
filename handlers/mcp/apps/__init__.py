"""What hosts of MCP Apps show beside an answer."""
