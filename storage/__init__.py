"""The cellar: the DuckDB store, its schema, queries, import and sync jobs."""
