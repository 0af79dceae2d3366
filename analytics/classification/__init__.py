"""Classification of bookings into type, category and merchant: tables, words and rules."""
