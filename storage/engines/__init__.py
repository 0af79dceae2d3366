"""The engines under the store: DuckDB in a file of this process, PostgreSQL wherever it runs."""
