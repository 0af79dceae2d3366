"""The ledgers that forecasts read: of one account, or of all accounts of one currency together."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from analytics.minor_digits import in_digits

HISTORY_DAYS_MIN = 30
BOOKINGS_MIN = 12

Reason = Literal["no_balance", "short_history", "few_bookings"]


class DayMoved(Struct, frozen=True, kw_only=True):
    """The bookings of a day: `total` is their sum, `usual` the sum without balance corrections and transfers within the
    selection, `bookings` their number."""

    total: Decimal = Decimal(0)
    usual: Decimal = Decimal(0)
    bookings: int = 0


NOTHING = DayMoved()


class Pending(Struct, frozen=True, kw_only=True):
    """A booking that is certain and not in the balance: pending, or booked for a coming day. `amount` is negative where
    money leaves."""

    id: str
    day: date
    amount: Decimal
    name: str


class AccountLedger(Struct, frozen=True, kw_only=True):
    """The balance at the end of `day`, and `moved`, the bookings until then by day, as far back as they are read.
    `first` day, number of `bookings` and `opening` balance are those of the whole history; `pending` are in none of
    these."""

    currency: str
    day: date
    balance: Decimal
    first: date
    bookings: int
    opening: Decimal
    moved: Mapping[date, DayMoved]
    pending: Sequence[Pending] = ()

    @property
    def age(self) -> int:
        """The number of days in the history, its first and last one included."""
        return (self.day - self.first).days + 1

    @property
    def reason(self) -> Reason | None:
        """The reason why there can be no forecast: "short_history" (fewer than 30 days), else "few_bookings" (fewer
        than 12); None where there can be one."""
        if self.age < HISTORY_DAYS_MIN:
            return "short_history"
        return "few_bookings" if self.bookings < BOOKINGS_MIN else None

    def at(self, day: date) -> "AccountLedger":
        """The ledger as it was at the end of an earlier day, without what was pending then; the opening balance and the
        first day stay."""
        later = [moved for when, moved in self.moved.items() if when > day]
        return replace(
            self,
            day=day,
            balance=self.balance - sum((each.total for each in later), Decimal(0)),
            bookings=self.bookings - sum(each.bookings for each in later),
            pending=(),
        )

    def usual_sums(self, days: int) -> list[Decimal]:
        """The sum of each of the last `days` days, `day` included, the latest first, 0 where nothing was booked;
        without balance corrections and transfers within the selection, which are neither income nor spending."""
        return [self.moved.get(self.day - timedelta(days=back), NOTHING).usual for back in range(days)]


def joint_ledger(
    ledgers: Iterable[AccountLedger], moved: Mapping[date, DayMoved], pending: Sequence[Pending] = ()
) -> AccountLedger:
    """One ledger for several accounts of the same currency and day: balances as they are listed, opening balances and
    numbers of bookings are added, the earliest first day counts, `moved` are the bookings of all of them by day,
    `pending` those that are not booked."""
    each = list(ledgers)
    return AccountLedger(
        currency=each[0].currency,
        day=each[0].day,
        balance=sum((in_digits(one.balance, one.currency) for one in each), Decimal(0)),
        first=min(one.first for one in each),
        bookings=sum(one.bookings for one in each),
        opening=sum((one.opening for one in each), Decimal(0)),
        moved=moved,
        pending=pending,
    )
