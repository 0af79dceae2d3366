"""What a simulated FinTS bank keeps: accounts and their bookings."""

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

BANK_CODE, BIC = "10000000", "TESTDEBBXXX"


@dataclass(kw_only=True)
class Booking:
    """One booking as the bank keeps it; pending until it books."""

    day: date
    amount: Decimal
    name: str
    purpose: str
    reference: str | None = None
    is_pending: bool = False


@dataclass(kw_only=True)
class Account:
    """One account of the bank's customer. `kind` is the FinTS number: 1 to 9 current, 10 to 19 savings."""

    number: str
    iban: str
    product: str = "Girokonto"
    kind: int = 1
    currency: str = "EUR"
    opening: Decimal = Decimal("1000.00")
    bookings: list[Booking] = field(default_factory=list)

    @property
    def balance(self) -> Decimal:
        return self.opening + sum((each.amount for each in self.bookings if not each.is_pending), Decimal(0))
