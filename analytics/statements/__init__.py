"""Checks of bookings against the statements and balances of their account."""
