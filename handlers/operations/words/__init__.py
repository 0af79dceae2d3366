"""What a person says of their bookings: one, some, or all of a counterpart."""
