"""Writer of Beancount ledgers: Assets:<Bank>:<Account> against Expenses or Income:<Category>, with all other facts
about accounts and bookings as metadata, so that connectors.own_formats.beancount_reader can read them back.

Left out: pending bookings, weak references. Both legs of a transfer between own accounts are written, each against its
category.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import BinaryIO

from analytics.records import AccountRecord, TransactionRecord
from connectors.blocks import Block, blocks_of_pairs
from connectors.classified_records import WORDS, Classification, Pair
from connectors.own_formats.cells import ACCOUNT_COLUMNS, Cells, account_cells, booking_cells

OPENED = date(1970, 1, 1)
OPENING_BALANCES = "Equity:Opening-Balances"
ADJUSTMENTS = "Equity:Adjustments"
ACCOUNT = {name.replace("_", "-"): name for name in ACCOUNT_COLUMNS}
BOOKING = {
    "id": "provider_id",
    "value-date": "value_date",
    "iban": "counterpart_iban",
    "bic": "counterpart_bic",
    "bank": "counterpart_bank_name",
    "creditor-id": "creditor_id",
    "debitor-id": "debitor_id",
    "mandate": "mandate_reference",
    "end-to-end-id": "end_to_end_id",
    "code": "bank_transaction_code",
    "purpose-code": "purpose_code",
    "gvc": "gvc",
    "swift-code": "swift_code",
    "mcc": "mcc",
    "bank-text": "bank_text",
    "original-amount": "original_amount",
    "original-currency": "original_currency",
    "reversal": "is_reversal",
    "return": "is_return",
}
MERCHANT = {"merchant": "merchant_name", "counterpart": "counterpart_name"}
"""The names of metadata, each with its cell. MERCHANT is used only where the payee is a merchant different from the
counterpart."""
DERIVED = {"detailed-category": "detailed_category"}
"""Metadata for people, which importing derives anew; written only where finer categories are requested."""
SAID = {name.replace("_", "-"): name for name in WORDS}
DAYS = ("value_date",)
NO_LETTER_OF_TAGS = re.compile(r"[^A-Za-z0-9/_.-]")
NO_LETTERS = re.compile("[^A-Za-z0-9]+")


def write(pairs: Iterable[Pair], stream: BinaryIO) -> None:
    """Write the records as a ledger, each booking against its category."""
    ledger = _LedgerNames()
    stream.write(ledger.open_directive(OPENING_BALANCES).encode())
    for block in blocks_of_pairs(pairs, ledger.transaction):
        if opened := ledger.open_directive(ledger.account(block.account)):
            stream.write((opened + _metadata(account_cells(block.account), ACCOUNT)).encode())
        block.copy_rows(stream)
        stream.write(ledger.balances(block).encode())


class _LedgerNames:
    """The names of the ledger's accounts, and which accounts have been opened."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._accounts: dict[tuple[str, str], str] = {}

    def account(self, account: AccountRecord) -> str:
        """The account's name in the ledger; if the name is taken, the end of the account number is added, if that is
        taken, too, also a running number."""
        key = (account.stable_key, account.currency)
        if key not in self._accounts:
            number = _component(account.stable_key[-4:])
            name = f"Assets:{_component(account.bank_name or 'Bank')}:{_component(account.name or f'Account {number}')}"
            taken = self._accounts.values()
            candidates = (name, f"{name}-{number}", f"{name}-{number}-{len(self._accounts)}")
            self._accounts[key] = next(candidate for candidate in candidates if candidate not in taken)
        return self._accounts[key]

    def open_directive(self, name: str) -> str:
        """The directive that opens an account of the ledger; empty after the first time."""
        if name in self._open:
            return ""
        self._open.add(name)
        return f"{OPENED} open {name}\n"

    def transaction(self, account: AccountRecord, row: TransactionRecord, classification: Classification) -> str:
        """The text of one booking with its two postings, or with one posting for each part into which its owner divided
        it, after the directives of accounts that it is the first to use; empty for a pending one. Parts that do not add
        up to the amount get no postings."""
        if row.status == "pending":
            return ""
        side = "Expenses" if row.amount < 0 else "Income"
        places = [(category, part.amount) for category, part in classification.said.splits]
        if (
            not places or sum(amount for _, amount in places) != row.amount
        ):  # at a bank that states more digits than the currency has
            places = [(classification.category or "OTHER", row.amount)]
        others = [(f"{side}:{_component(category.title())}", amount) for category, amount in places]
        payee = row.merchant_name or row.counterpart_name
        words = f"{f'{_quote(payee)} ' if payee else ''}{_quote(row.purpose or '')}{_hashtags(classification)}"
        return (
            "".join(self.open_directive(other) for other, _ in others)
            + f"{row.booking_date} * {words}\n"
            + _metadata(booking_cells(row), BOOKING | MERCHANT if row.merchant_name else BOOKING)
            + _metadata(classification._asdict(), DERIVED)
            + _metadata(classification.said.cells(), SAID)
            + f"  {self.account(account)}  {row.amount:f} {row.currency}\n"
            + "".join(f"  {other}  {-amount:f} {row.currency}\n" for other, amount in others)
            + "\n"
        )

    def balances(self, block: Block) -> str:
        """The text of the directives that follow an account's bookings: the opening balance, the adjustment for changes
        without a booking, and the balance that the bank states at the end; empty where it states none."""
        balances, name, currency = block.balances(), self.account(block.account), block.account.currency
        if balances is None:
            return ""
        (opening, closing), (opened, closed) = balances, block.days()
        assert opened is not None
        assert closed is not None
        text = ""
        for day, words, amount, other in (
            (opened, "Opening balance", opening, OPENING_BALANCES),
            (closed, "Balance adjustment", closing - opening - block.total, ADJUSTMENTS),
        ):
            if amount:
                text += (
                    f'{self.open_directive(other)}{day} * "{words}"\n  {name}  {amount:f} {currency}\n'
                    f"  {other}  {-amount:f} {currency}\n\n"
                )
        return f"{text}{closed + timedelta(days=1)} balance {name}  {closing:f} {currency}\n\n"


def _metadata(cells: Cells, names: Mapping[str, str]) -> str:
    """A line for each cell with a value."""
    return "".join(
        f"  {name}: {value if cell in DAYS else _quote(value)}\n"
        for name, cell in names.items()
        if (value := cells[cell])
    )


def _hashtags(classification: Classification) -> str:
    """The tags in Beancount's form, as far as their letters allow."""
    return "".join(f" #{tag}" for tag in classification.said.tags if not NO_LETTER_OF_TAGS.search(tag))


def _component(text: str) -> str:
    """A part of an account name: letters, digits and dashes, beginning with a capital letter or a digit; "X" where
    nothing is left."""
    plain = NO_LETTERS.sub("-", text.translate(UMLAUTS)).strip("-")
    return (plain[:1].upper() + plain[1:]) or "X"


UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


def _quote(text: str) -> str:
    return '"' + text.translate(ESCAPED) + '"'


ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"})
