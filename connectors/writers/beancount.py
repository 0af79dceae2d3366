"""Writes a Beancount ledger: Assets:<Bank>:<Account> against Expenses or Income:<Category>, ids as metadata.

Left out: announced bookings, codes of banks, BICs, weak references, flags of reversals and returns, original amounts.
Both legs of a transfer between own accounts are written, each against its category.
"""

import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import BinaryIO

from connectors.writers.blocks import Block, blocks
from storage.records import AccountRecord, Record, TransactionRecord

CategoryOf = Callable[[TransactionRecord], str | None]
OPENED = date(1970, 1, 1)
OPENING_BALANCES = "Equity:Opening-Balances"


def write(records: Iterable[Record], stream: BinaryIO, *, category_of: CategoryOf = lambda _: None) -> None:
    """The records as a ledger; `category_of` names the category of a row while that row is written."""
    ledger = _Ledger(category_of)
    for name in (OPENING_BALANCES,):
        stream.write(ledger.opened(name).encode())
    for block in blocks(records, ledger.transaction):
        stream.write(ledger.opened(ledger.account(block.account)).encode())
        block.copy_rows(stream)
        stream.write(ledger.balances(block).encode())


class _Ledger:
    """Names that are given once, and what is opened already."""

    def __init__(self, category_of: CategoryOf) -> None:
        self._category_of = category_of
        self._open: set[str] = set()
        self._accounts: dict[tuple[str, str], str] = {}

    def account(self, account: AccountRecord) -> str:
        """The account's name in the ledger; one that is taken gets the end of its number."""
        key = (account.stable_key, account.currency)
        if key not in self._accounts:
            number = _component(account.stable_key[-4:])
            name = f"Assets:{_component(account.bank_name or 'Bank')}:{_component(account.name or f'Account {number}')}"
            taken = self._accounts.values()
            candidates = (name, f"{name}-{number}", f"{name}-{number}-{len(self._accounts)}")
            self._accounts[key] = next(found for found in candidates if found not in taken)
        return self._accounts[key]

    def opened(self, name: str) -> str:
        """The directive that opens an account of the ledger, once."""
        if name in self._open:
            return ""
        self._open.add(name)
        return f"{OPENED} open {name}\n"

    def transaction(self, account: AccountRecord, row: TransactionRecord) -> str:
        """One booking with its two postings."""
        if row.status == "pending":
            return ""
        side = "Expenses" if row.amount < 0 else "Income"
        other = f"{side}:{_component((self._category_of(row) or 'OTHER').title())}"
        payee = row.merchant_name or row.counterpart_name
        lines = [
            f"{row.booking_date} * " + (f"{_quoted(payee)} " if payee else "") + _quoted(row.purpose or ""),
            *(
                f"  {name}: {value if isinstance(value, date) else _quoted(value)}"
                for name, value in (
                    ("id", row.provider_id),
                    ("value-date", row.value_date),
                    ("iban", row.counterpart_iban),
                    ("creditor-id", row.creditor_id),
                    ("mandate", row.mandate_reference),
                    ("end-to-end-id", row.end_to_end_id),
                )
                if value
            ),
            f"  {self.account(account)}  {row.amount:f} {row.currency}",
            f"  {other}  {-row.amount:f} {row.currency}",
        ]
        return self.opened(other) + "\n".join(lines) + "\n\n"

    def balances(self, block: Block) -> str:
        """Where the money was before, and the balance that the bank states at the end."""
        found, name, currency = block.balances(), self.account(block.account), block.account.currency
        if found is None:
            return ""
        statement, (opening, closing) = block.statement, found
        opened = statement.opening_date or block.first or statement.closing_date
        closed = statement.closing_date or block.last or opened
        assert opened is not None
        assert closed is not None
        text = ""
        if opening:
            text += (
                f'{opened} * "Opening balance"\n  {name}  {opening:f} {currency}\n'
                f"  {OPENING_BALANCES}  {-opening:f} {currency}\n\n"
            )
        return f"{text}{closed + timedelta(days=1)} balance {name}  {closing:f} {currency}\n\n"


def _component(text: str) -> str:
    """A part of an account name: letters, digits and dashes, beginning with a capital or a digit."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text.translate(UMLAUTS)).strip("-")
    return (plain[:1].upper() + plain[1:]) or "X"


UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
