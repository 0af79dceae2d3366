"""Operations on what a person says about their bookings: about one, some, or all of a counterpart."""
