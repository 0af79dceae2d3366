"""What a person says of their bookings, by command."""
