"""The days between two balances of an account, and what is booked in them."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPeriod:
    """Days, both included, the balance before them and the one after them."""

    first: date
    last: date
    opening: Decimal
    bookings: Decimal
    closing: Decimal

    @property
    def difference(self) -> Decimal:
        """What the bookings do not explain."""
        return self.closing - self.opening - self.bookings
