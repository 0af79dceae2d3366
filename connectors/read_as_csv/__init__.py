"""Formats whose tables are read as CSV files: workbooks and QIF."""
