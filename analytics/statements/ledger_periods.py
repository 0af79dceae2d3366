"""The periods between two balances of an account, and the sums of their bookings."""

from datetime import date
from decimal import Decimal

from msgspec import Struct


class LedgerPeriod(Struct, frozen=True, kw_only=True):
    """The days from `first` to `last`, both included, with the balance before them, the sum of their `bookings`, and
    the balance after them."""

    first: date
    last: date
    opening: Decimal
    bookings: Decimal
    closing: Decimal

    @property
    def difference(self) -> Decimal:
        """The part of the balance's change that the bookings do not explain."""
        return self.closing - self.opening - self.bookings
