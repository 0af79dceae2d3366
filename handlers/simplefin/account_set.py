"""Writes the answer to GET /simplefin/accounts, piece by piece: a user's data in the shapes of SimpleFIN."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import orjson
import polars as pl
from msgspec import Struct, field

from connectors.text import clean
from handlers.json_shapes import money_text
from handlers.names import Json
from handlers.work.cache.user_data import UserData
from storage.accounts import StoredAccount
from storage.connections import NEED_USER
from storage.oauth.moments import aware
from storage.transactions import Selection

DAY = 86_400
POSTED_AT = 10 * 3_600  # seconds after midnight UTC: the same date from Honolulu to Auckland, whatever the settings
NOW_SECONDS = 15 * 60  # by which an app's "now" may be older than ours: it asks for many windows, by a clock of its own
TEXT_CHARACTERS_MAX = 500
ROWS_MAX = 100_000  # of one answer
PIECE_ROWS = 500  # written at once: a whole answer took 75 MB while it was made and sent
EPOCH = date(1970, 1, 1).toordinal()


def asked_days(start: Fraction, end: Fraction | None, *, today: date, now: Fraction) -> tuple[date, date] | None:
    """The first and last day of bookings that are posted from `start` on and before `end` (None: without end), as far
    as the calendar goes; None for an empty range. All moments are in seconds since 1970. Today's bookings may be
    stamped later than now; they are included in a window that ends now."""
    last = _day(end) - 1 if end is not None else date.max.toordinal()
    if end is not None and end >= now - NOW_SECONDS:
        last = max(last, today.toordinal() - EPOCH)
    first, last = max(_day(start) + EPOCH, date.min.toordinal()), min(last + EPOCH, date.max.toordinal())
    return (date.fromordinal(first), date.fromordinal(last)) if first <= last else None


def posting_moment(day: date) -> int:
    """The moment at which a booking of this day counts as posted, 10:00 UTC, in seconds since 1970."""
    return (day.toordinal() - EPOCH) * DAY + POSTED_AT


def _day(moment: Fraction) -> int:
    """The first day whose bookings are posted at this moment or later, counted from 1970-01-01 as 0."""
    return math.ceil((moment - POSTED_AT) / DAY)


class AccountSet(Struct, kw_only=True):
    """Writes one answer; `address` is that of the service, `seen` are the accounts that the app may see, and `errors`
    collects what the answer reports to the app's user."""

    reading: UserData
    address: str
    seen: Sequence[StoredAccount]
    now: datetime
    errors: list[Json] = field(default_factory=list)

    def pieces(
        self, chosen: Sequence[StoredAccount], *, days: tuple[date, date] | None = None, with_pending: bool = False
    ) -> Iterator[bytes]:
        """The pieces of the answer, as JSON, with these accounts and their transactions of these days (first, last),
        with pending ones if wanted; without `days`, the balances alone. Reports connections that need their user,
        accounts without a known balance, which are left out, and bookings that were too many."""
        names = _names(self.seen)
        self._connections_in_need(chosen)
        known = [account for account in chosen if account.balance is not None]
        for account in chosen:
            if account.balance is None:
                sentence = f"{names[account.id]} is left out: its balance is not known"
                self._problem("act.failed", sentence, account_id=account.id)
        ids = [account.id for account in known]
        found = self._rows(ids, names, *days, with_pending) if days is not None and ids else []
        organizations = {account.connection_id: self._organization(account) for account in chosen}
        head = {
            "errors": [each["msg"] for each in self.errors],
            "errlist": self.errors,
            "connections": [
                {"conn_id": id_, "name": org["name"], "org_id": id_, "sfin_url": self.address}
                for id_, org in organizations.items()
            ],
        }
        yield orjson.dumps(head)[:-1] + b',"accounts":['
        for place, account in enumerate(known):
            yield b"," * (place > 0) + orjson.dumps(self._account(account, names[account.id]))[:-1]
            yield b',"transactions":['
            yield from self._transactions(account, found)
            yield b"]}"
        yield b"]}"

    def _connections_in_need(self, chosen: Iterable[StoredAccount]) -> None:
        """Report each connection that needs its user, in the exact words that apps look for to mark the bank's
        accounts."""
        in_need = {
            (account.connection_id, _bank(account)): None
            for account in chosen
            if self.reading.statuses[account.connection_id] in NEED_USER
        }
        for connection_id, bank in in_need:
            self._problem("con.auth", f"Connection to {bank} may need attention", conn_id=connection_id)

    def _problem(self, code: str, sentence: str, **about: str) -> None:
        self.errors.append({"code": code, "msg": sentence, **about})

    def _account(self, account: StoredAccount, name: str) -> Json:
        """The account without its transactions, which follow."""
        assert account.balance is not None
        balance = money_text(account.balance, account.currency)
        return {
            "id": account.id,
            "name": name,
            "currency": account.currency,
            "balance": balance,
            "available-balance": balance,
            "balance-date": self._balance_moment(account),
            "holdings": [],
            "conn_id": account.connection_id,
            "org": self._organization(account),
        }

    def _balance_moment(self, account: StoredAccount) -> int:
        now = int(aware(self.now).timestamp())
        if account.last_synced_at is not None:
            return min(now, int(aware(account.last_synced_at).timestamp()))
        assert account.balance_date is not None, "a balance is that of a day"
        return min(now, posting_moment(account.balance_date))

    def _organization(self, account: StoredAccount) -> Json:
        """The bank as an organization. Its domain tells connections apart and belongs to no web site, because an app
        would ask a third party for that site's icon."""
        label = re.sub("[^a-z0-9]+", "-", account.connection_id.lower()).strip("-")
        return {
            "id": account.connection_id,
            "name": _bank(account),
            "domain": f"{label}.invalid",
            "sfin-url": self.address,
        }

    def _rows(
        self, account_ids: list[str], names: Mapping[str, str], first: date, last: date, with_pending: bool
    ) -> list[tuple[pl.DataFrame, bool]]:
        """The `id` and `account_id` of the pending transactions, then of the booked ones, both with the earliest
        booking date first, and whether they are pending. Reports accounts whose older bookings do not fit into the
        answer."""
        found = []
        if with_pending:
            waiting = self.reading.pending.filter(
                pl.col("account_id").is_in(account_ids), pl.col("booking_date").is_between(first, last)
            )
            found.append((_in_order(waiting), True))
        selection = Selection(account_ids=account_ids, date_from=first, date_to=last)
        found.append((_in_order(self._newest_rows(self.reading.entries.matching(selection), names)), False))
        return found

    def _newest_rows(self, bookings: pl.DataFrame, names: Mapping[str, str]) -> pl.DataFrame:
        """The newest bookings, as many as one answer may hold, cut at whole days; accounts with older ones are reported
        as incomplete. The whole frame, in its order, if it fits."""
        if bookings.height <= ROWS_MAX:
            return bookings
        bookings = bookings.sort("booking_date")
        left_out = bookings.head(bookings.height - ROWS_MAX)
        whole_from = left_out["booking_date"][-1] + timedelta(days=1)
        for id_ in left_out["account_id"].unique(maintain_order=True):
            sentence = (
                f"{names[id_]}: this answer is whole from {whole_from.isoformat()} on, ask for earlier days apart"
            )
            self._problem("act.missingdata", sentence, account_id=id_)
        return bookings.filter(pl.col("booking_date") >= whole_from)

    def _transactions(self, account: StoredAccount, found: Iterable[tuple[pl.DataFrame, bool]]) -> Iterator[bytes]:
        """The account's transactions as JSON, separated by commas."""
        comma = b""
        for bookings, pending in found:
            for piece in bookings.filter(pl.col("account_id") == account.id)["id"].to_frame().iter_slices(PIECE_ROWS):
                ids = piece["id"].to_list()
                rows = self.reading.rows_by_id(ids, pending=pending)
                if ids:  # of an empty frame, one empty slice comes
                    yield comma + orjson.dumps([_transaction(rows[id_], pending=pending) for id_ in ids])[1:-1]
                    comma = b","


def _in_order(bookings: pl.DataFrame) -> pl.DataFrame:
    return bookings.sort("booking_date", "id").select("id", "account_id")


def _transaction(row: Mapping[str, Any], *, pending: bool) -> Json:
    stamp = posting_moment(row["booking_date"])
    payee, description, memo = _words(row)
    return {
        "id": row["id"],
        "posted": 0 if pending else stamp,
        "transacted_at": stamp,
        "amount": money_text(row["amount"], row["currency"]),
        "description": description,
        "payee": payee,
        "memo": memo,
        **({"pending": True} if pending else {}),
        "extra": {"category": row["category"]} if row["category"] is not None else {},
    }


def _words(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Payee, description and memo. Payee and description are never empty: an app gives up its whole sync for an empty
    one. The memo names the counterpart where the merchant has another name, unless it is named already."""
    merchant, counterpart, purpose = (
        clean(row[name], TEXT_CHARACTERS_MAX) for name in ("merchant_name", "counterpart_name", "purpose")
    )
    payee = merchant or counterpart or purpose or (row["type"] or "booking").replace("_", " ")
    description = purpose or payee
    memo = counterpart or ""
    if memo.casefold() in f"{payee} {description}".casefold() or payee.casefold() in memo.casefold():
        memo = ""
    return payee, description, memo


def _bank(account: StoredAccount) -> str:
    return clean(account.bank_name, TEXT_CHARACTERS_MAX) or "Bank"


def _names(accounts: Sequence[StoredAccount]) -> dict[str, str]:
    """The name of each account, or of its bank if it has none, by id: where two are equal, with the end of the IBAN,
    and where that is equal too or missing, with the currency."""
    names = {account.id: clean(account.name, TEXT_CHARACTERS_MAX) or _bank(account) for account in accounts}
    ends = {account.id: f" …{account.iban[-4:]}" if account.iban else "" for account in accounts}
    for more in (ends, {account.id: f" {account.currency}" for account in accounts}):
        often = Counter(names.values())
        names = {id_: name + (more[id_] if often[name] > 1 else "") for id_, name in names.items()}
    return names
