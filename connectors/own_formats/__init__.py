"""The formats that this service writes and reads again: CSV, JSON lines, Parquet, Beancount."""
