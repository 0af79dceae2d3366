"""What a look at a user's data finds worth telling, and how it is known again."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

INTERRUPTS = (
    "overdraft.ahead",
    "balance.low",
    "debit.new",
    "charge.double",
    "price.raised",
    "income.late",
    "payment.failed",
    "consent.ending",
    "sync.failing",
    "ledger.wrong",
    "access.new",
    "server.backup",
    "server.disk",
)
"""The kinds that may interrupt a person."""
ON_THE_PAGE = ("account.same", "booking.duplicate", "booking.unsorted")
"""The kinds that wait until their person looks."""
KINDS = (*INTERRUPTS, *ON_THE_PAGE)


class Finding(Struct, frozen=True, kw_only=True):
    """Something to tell. Kind, `subject` (such as a mandate or a payee; any one of its lines is enough) and `day` make
    one cause: found again on a day at most `within` days off, it is the same, whatever ids its rows have now; with
    `is_lasting` it is the same until it was not found once. Another `stage` of it is told once more.

    `message` names its sentence and `arguments` fill it. `cause_day` is the day of the booking that it is about, None
    for what holds now. After `ends_on` it is over by itself; None: once it is not found. `interrupts` False: it only
    waits on the page."""

    kind: str
    subject: str
    day: date
    message: str
    arguments: Mapping[str, str]
    within: int = 0
    is_lasting: bool = False
    stage: str = ""
    interrupts: bool = True
    cause_day: date | None = None
    ends_on: date | None = None
    account_ids: Sequence[str] = ()
    transaction_ids: Sequence[str] = ()
    subscription_id: str | None = None
    connection_id: str | None = None
    amount: Decimal | None = None
    currency: str | None = None
    due_on: date | None = None
    returnable_until: date | None = None
