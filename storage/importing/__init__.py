"""From records to stored bookings, in one transaction: known or new, derived, paired, journalled."""
