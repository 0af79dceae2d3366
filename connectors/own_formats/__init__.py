"""The formats that this service both writes and reads: CSV, JSON lines, Parquet, Beancount."""
