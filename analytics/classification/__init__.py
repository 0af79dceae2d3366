"""Type, category and merchant of a booking: tables, words and rules."""
