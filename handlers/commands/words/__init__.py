"""Commands on what users say about their bookings."""
