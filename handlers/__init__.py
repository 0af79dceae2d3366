"""The edges: HTTP operations, OAuth pages, the application, the command line and its settings."""
