"""The store: its schema, queries, import and sync jobs, over DuckDB or PostgreSQL."""
