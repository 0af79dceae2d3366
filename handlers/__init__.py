"""The edges: HTTP operations, OAuth pages, the application, the command line and its settings."""

import os

# Requests are many and small: threads of Polars would only yield to each other. It reads this when it is imported
os.environ.setdefault("POLARS_MAX_THREADS", "1")
