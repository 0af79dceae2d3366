"""The demo bank as a connector like any other: it makes callers wait, fails on request, and yields its ledgers."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.periods import months_later
from analytics.records import Batch, Record, StatementRecord
from connectors.connector import (
    Connection,
    Connector,
    ConsentExpired,
    Json,
    Misconfigured,
    ProviderUnavailable,
    RateLimited,
    Ready,
    UserActionRequired,
    Waiting,
)
from connectors.sources.demo.households import HOUSEHOLDS, household
from connectors.sources.demo.ledger import Account, Ledger
from connectors.sources.demo.rhythms import ANCHOR

FAULTS = ("none", "fails", "needs_user", "slow", "rate_limited", "consent_expired")
POLLS_DEFAULT = 2  # the first answer is "not yet", so that the status syncing can be seen
POLLS_MAX = 1000
ACCOUNTS_MAX = 100
OVERLAP_DAYS = 10  # banks book late
HISTORY_MONTHS_MIN = 24
POLL_SECONDS = 0.2
SLOW_SECONDS = 60
SLOW_POLL_SECONDS = 5.0
RATE_LIMIT_SECONDS = 3600.0


class DemoSettings(Struct, frozen=True, kw_only=True):
    """The settings that `bankdata connect demo` stored for a connection. `fault` is the failure that the demo bank
    plays, "none" for none, and `polls` the number of the poll at which it is ready."""

    household: str = "standard"
    seed: str
    accounts: int | None = None
    bank_name: str | None = None
    fault: str = "none"
    polls: int = POLLS_DEFAULT

    @classmethod
    def of(cls, connection: Connection) -> "DemoSettings":
        """The checked settings of a connection; without a seed, its household is its own. Raises Misconfigured."""
        given = {name: value for name, value in connection.settings.items() if value is not None}
        given.setdefault("seed", connection.id)
        unknown = given.keys() - set(cls.__struct_fields__)
        if unknown:
            raise Misconfigured("The demo bank has no setting named {names}.", names=", ".join(sorted(unknown)))
        settings = cls(**given)
        if settings.household not in HOUSEHOLDS:
            raise Misconfigured("The demo bank's households are {names}.", names=", ".join(HOUSEHOLDS))
        if settings.fault not in FAULTS:
            raise Misconfigured("The demo bank's faults are {names}.", names=", ".join(FAULTS))
        if settings.accounts is not None and not _is_whole_number(settings.accounts, 1, ACCOUNTS_MAX):
            raise Misconfigured("The demo bank has 1 to {limit} accounts.", limit=ACCOUNTS_MAX)
        if not _is_whole_number(settings.polls, 1, POLLS_MAX):
            raise Misconfigured("The demo bank is ready after 1 to {limit} polls.", limit=POLLS_MAX)
        if not isinstance(settings.seed, str):
            raise Misconfigured("The demo bank's seed is a text.")
        return settings

    def account_list(self) -> tuple[Account, ...]:
        """The accounts of the connection, in the order of the bank."""
        return household(self.household, seed=self.seed, accounts=self.accounts, bank_name=self.bank_name)


class DemoBank(Connector):
    """The demo bank. Its history begins in 2024 (or at least 24 months ago) and grows day by day."""

    name = "demo"
    is_local = True
    unattended_syncs_max = None

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        """The handle, which counts the polls. Raises the configured fault of a bank that needs its customer or is asked
        too often."""
        settings = DemoSettings.of(connection)
        match settings.fault:
            case "needs_user":
                raise UserActionRequired
            case "consent_expired":
                raise ConsentExpired
            case "rate_limited":
                raise RateLimited(retry_after=RATE_LIMIT_SECONDS)
        return {"polls": 0, "started": now.isoformat()}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """Ready at the poll whose number is in the settings, until then Waiting; a slow bank not before a minute has
        passed. Raises ProviderUnavailable where the configured fault is to fail."""
        settings = DemoSettings.of(connection)
        polls = int(handle["polls"]) + 1
        if settings.fault == "slow":
            waited = (now - datetime.fromisoformat(handle["started"])).total_seconds()
            if waited < SLOW_SECONDS:
                return Waiting(seconds=SLOW_POLL_SECONDS, handle={**handle, "polls": polls})
        if polls < settings.polls:
            return Waiting(seconds=POLL_SECONDS, handle={**handle, "polls": polls})
        if settings.fault == "fails":
            raise ProviderUnavailable(detail="fault switch")
        return Ready()

    def fetch(
        self,
        connection: Connection,
        handle: Json,  # noqa: ARG002 - the protocol names it
        *,
        cursor: Json | None,
        today: date,
    ) -> Iterator[Batch]:
        """One batch of whole days: all, or those from ten days before the cursor, which is the last day that was
        fetched."""
        first = history_start(today)
        if cursor is not None:
            seen = min(date.fromisoformat(cursor["day"]), today)  # a demo server's clock may have been ahead
            first = max(first, seen - timedelta(days=OVERLAP_DAYS))
        accounts = DemoSettings.of(connection).account_list()
        yield Batch(
            id=f"demo:{connection.id}:{today.isoformat()}",
            records=_records(accounts, first, today),
            cursor={"day": today.isoformat()},
        )


def history_start(today: date) -> date:
    """The first day of the history: 1 January 2024, or the first of the month two years ago where that is earlier."""
    return min(ANCHOR, months_later(today.replace(day=1), -HISTORY_MONTHS_MIN))


def _records(accounts: tuple[Account, ...], first: date, today: date) -> Iterator[Record]:
    for account in accounts:
        ledger = Ledger(account)
        yield account.record
        opening = ledger.balance(first - timedelta(days=1))
        total = Decimal(0)
        for row in ledger.bookings(first, today):
            total += row.amount
            yield row
        yield from ledger.pending_bookings(today)
        yield StatementRecord(
            opening=opening if account.says_balance else None,
            opening_date=first - timedelta(days=1) if account.says_balance else None,
            closing=opening + total if account.says_balance else None,
            closing_date=today if account.says_balance else None,
            is_pending_complete=True,
            is_authoritative=account.says_balance,
        )


def _is_whole_number(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
