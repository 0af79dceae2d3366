"""Connectors bring bank data in: one module per source and per file format."""
