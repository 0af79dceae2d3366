"""Statement writers: an iterator of records in, one file of a bank format out, streaming."""
