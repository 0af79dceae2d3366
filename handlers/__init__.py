"""The edges: HTTP operations, OAuth pages, the application, the command line and its settings."""

import os

# Requests are many and small: threads of Polars would only yield to each other. It reads this when it is imported
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# What Polars frees goes back at once, whichever thread frees it: else a long history stands in memory several times
os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0")
