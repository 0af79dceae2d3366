"""The CSV files of banks, read by profiles: facts about each layout, without code."""
