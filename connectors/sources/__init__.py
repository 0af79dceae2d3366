"""Where bank data come from: one module or package per kind of connection."""
