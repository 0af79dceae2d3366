"""The sources of bank data: one module or package per kind of connection."""
