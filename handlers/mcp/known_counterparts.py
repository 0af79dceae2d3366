"""Flags a booking by its counterpart: whether and since when the user has paid them before, whatever the texts say."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.frames import frame_of
from analytics.letters import fold
from analytics.searching.history import KNOWN_DAYS_MIN
from connectors.reference.bank_names import bank_name
from handlers.mcp.untrusted_texts import BANK_NAME, CENTS, FIRST_CENTS, NEW_PAYEE
from handlers.names import Json
from storage.accounts import StoredAccount

CENTS_BELOW = 1  # in any currency: an attacker pays less than this to get a text into the list
BANK_CODE = slice(4, 12)  # of an IBAN, in most countries


class Relations(Struct, frozen=True, kw_only=True):
    """For the counterparts of some rows the first day on which they were paid, by account number and by folded name;
    the day of the first booking (`known_from`); the user's banks, by folded name with the bank codes of the accounts
    there; and the numbers of the user's own accounts."""

    ibans: Mapping[str, date]
    names: Mapping[str, date]
    known_from: date | None
    banks: Mapping[str, Collection[str]]
    own: Collection[str]

    def flags(self, row: Json) -> frozenset[str]:
        """The flags of one row: less than one unit of money, from somebody never paid or as the first payment to
        somebody; the first payment to an account number, if 90 days are known before it; a name like that of the user's
        bank at another account number. Where there is an account number, it alone decides who was paid, since anybody
        can use the name of somebody known. A row of the user's own accounts gets none."""
        amount, on, iban = row["amount"], _day(row), row["counterpartIban"]
        if iban in self.own or not (iban or row["counterpartName"]):
            return frozenset()
        paid, found = self._first_paid(row), set()
        if 0 < amount < CENTS_BELOW and paid is None:
            found.add(CENTS)
        if amount < 0 and (paid is None or paid >= on):
            if amount > -CENTS_BELOW:
                found.add(FIRST_CENTS)
            if iban and self.known_from is not None and (on - self.known_from).days >= KNOWN_DAYS_MIN:
                found.add(NEW_PAYEE)
        if iban and not self.is_known(row) and self._is_called_like_a_bank(row["counterpartName"], iban):
            found.add(BANK_NAME)
        return frozenset(found)

    def is_known(self, row: Json) -> bool:
        """Whether the row's account number was paid on an earlier day: its holder may ask for money as people do."""
        since = self.ibans.get(row["counterpartIban"] or "")
        return since is not None and since < _day(row)

    def _first_paid(self, row: Json) -> date | None:
        if row["counterpartIban"]:
            return self.ibans.get(row["counterpartIban"])
        return self.names.get(fold(row["counterpartName"] or ""))

    def _is_called_like_a_bank(self, name: str | None, iban: str) -> bool:
        said = f" {fold(name or '')} "
        return any(
            f" {bank} " in said and iban[BANK_CODE] not in codes and fold(bank_name(iban) or "") != bank
            for bank, codes in self.banks.items()
        )


def relations(rows: Sequence[Json], bookings: pl.DataFrame, accounts: Sequence[StoredAccount]) -> Relations:
    """The user's earlier payments to the counterparts of these rows, among the `bookings` and `accounts` given."""
    paid = bookings.lazy().filter(pl.col("amount") < 0)
    ibans = [row["counterpartIban"] for row in rows if row["counterpartIban"]]
    wanted = {fold(row["counterpartName"] or "") for row in rows if _is_decided_by_name(row)}
    names: dict[str, date] = {}
    for name, since in _since(paid, "counterpart_name") if wanted else ():
        if (folded := fold(name)) in wanted:
            names[folded] = min(since, names.get(folded, since))
    known_from: Any = bookings["booking_date"].min()
    return Relations(
        ibans=dict(_since(paid.filter(pl.col("counterpart_iban").is_in(ibans)), "counterpart_iban")),
        names=names,
        known_from=known_from,
        banks=_banks(accounts),
        own={account.iban for account in accounts if account.iban},
    )


def _since(paid: pl.LazyFrame, column: str) -> Iterable[tuple[str, date]]:
    """Each value in this column, with the first booking date of a payment to it."""
    first = paid.drop_nulls(column).group_by(column).agg(pl.col("booking_date").min())
    return first.pipe(frame_of).iter_rows()


def _is_decided_by_name(row: Json) -> bool:
    return not row["counterpartIban"] and abs(row["amount"]) < CENTS_BELOW


def _banks(accounts: Sequence[StoredAccount]) -> dict[str, set[str]]:
    codes: dict[str, set[str]] = {}
    for account in accounts:
        codes.setdefault(fold(account.bank_name), set()).add((account.iban or "")[BANK_CODE])
    return codes


def _day(row: Json) -> date:
    return date.fromisoformat(row["bookingDate"][:10])
