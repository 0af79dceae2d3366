"""What a person says of single bookings, and how it finds them again when their ids have changed."""
