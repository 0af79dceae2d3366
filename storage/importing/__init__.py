"""Turns records into stored bookings, in one transaction: recognised or new, derived, paired, journalled."""
