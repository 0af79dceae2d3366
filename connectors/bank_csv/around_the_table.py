"""The lines above and below the table: account, currency, balances and their day."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from decimal import Decimal

from msgspec import Struct

from analytics.records import AccountKind
from connectors.bank_csv.amounts_and_dates import FORMATS, date_reader, read_amount
from connectors.bank_csv.cell_kinds import kinds
from connectors.bank_csv.currencies import currency_in
from connectors.bank_csv.profile import Mark, comparable
from connectors.bank_csv.vocabulary import CLOSING_WORDS, OPENING_WORDS, label_kind
from connectors.card_numbers import hidden_card_number
from connectors.text import clean, compact_iban, currency_code

_IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}\b")
_DAY = re.compile(r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KINDS: tuple[tuple[str, AccountKind], ...] = (
    ("tagesgeld", "savings"), ("extra-konto", "savings"), ("sparkonto", "savings"), ("savings", "savings"),
    ("kreditkarte", "credit_card"), ("credit card", "credit_card"), ("visa", "credit_card"),
    ("mastercard", "credit_card"), ("giro", "checking"), ("depot", "securities"),
)  # fmt: skip
_THEIRS = re.compile("gegen|tegen|contrepart|counter|empfang|begunstigt|beneficia|payee|partner|protiuc|filter")
_WORD_MAX = 30
_read_any_day = date_reader(FORMATS)


class Metadata(Struct):
    """Facts about one table from the lines around it; None where the file does not state one. `dated` is the day on
    which the file was made or its period ends; `read_day` reads days as the table writes them."""

    account: str | None = None
    iban: str | None = None
    name: str | None = None
    currency: str | None = None
    opening: Decimal | None = None
    closing: Decimal | None = None
    closing_date: date | None = None
    dated: date | None = None  # when the file was made or where its period ends
    read_day: Callable[[str], date] = _read_any_day

    def take(self, row: Sequence[str], mark: Mark) -> str | None:
        """Read facts from a row that is not a booking into this object; a known name, account or currency stays, a
        balance is replaced. Returns the kind of the row's first known label, such as "closing" or "account", None where
        it has none."""
        first = None
        cells = [cell for index, cell in enumerate(row) if not index or cell.strip()]
        for index, cell in enumerate(cells):
            label, _, behind = cell.partition(":")
            kind = label_kind(label)
            values = [value for value in (behind, *cells[index + 1 :]) if value.strip()]
            if kind is None and index == 0 and values and compact_iban(values[0]):
                kind = "account"
            if kind == "account" and _THEIRS.search(comparable(label)):
                kind = None
            if kind:
                self._learn(kind, label, values, mark)
                first = first or kind
                if kind in ("opening", "closing"):
                    break
        return first

    def take_table(self, labels: Sequence[str], values: Sequence[str], mark: Mark) -> None:
        """Read facts from a row of values below a row of labels, if the labels name an account and a closing balance,
        as those of Sparda banks do; any other pair of rows is ignored."""
        known = [label_kind(label) for label in labels]
        has_figures = any(character.isdigit() for label in labels for character in label)
        if len(labels) > 2 and not has_figures and {"account", "closing"} <= set(known):
            for label, value in zip(labels, values, strict=True):
                self.take((label, value), mark)

    def take_total(self, texts: Iterable[str | None], amount: Decimal | None, day: date | None) -> bool:
        """Whether a text of a row inside the table says that the row is an opening or closing balance, and not a
        booking. Such a balance (`amount`, `day`) is kept here, unless one of its kind is known."""
        words = {comparable(text).rstrip(" :") for text in texts if text and len(text) < _WORD_MAX}
        if not words:
            return False
        if words & OPENING_WORDS:
            self.opening = amount if self.opening is None else self.opening
            return True
        if words & CLOSING_WORDS:
            if self.closing is None or (day and self.closing_date and day > self.closing_date):
                self.closing, self.closing_date = amount, day
            return True
        return False

    def kind(self) -> AccountKind | None:
        """The kind of account that the account's name suggests; None where it suggests none."""
        name = comparable(self.name or "")
        return next((kind for word, kind in _KINDS if word in name), None)

    def _learn(self, kind: str, label: str, values: list[str], mark: Mark) -> None:
        if kind in ("opening", "closing"):
            self._learn_balance(kind, label, values, mark)
        elif kind == "currency" and values:
            self.currency = self.currency or currency_in(values[0])
        elif kind == "account_name":
            title = " ".join(label.split()[1:]) if comparable(label).startswith("umsatze") else ""
            self.name = self.name or clean(title or (values[0] if values else None))
        elif kind == "account":
            self._learn_account(label, values)
        elif kind == "dated":
            self.dated = self._day_in(" ".join([label, *values])) or self.dated

    def _learn_balance(self, kind: str, label: str, values: list[str], mark: Mark) -> None:
        amount = None
        for value in values:
            if "amount" in kinds(value) and "date" not in kinds(value) and amount is None:
                try:
                    amount, currency = read_amount(value, mark)
                except ValueError:
                    continue  # a label may be beside anything; only a readable balance counts
                self.currency = self.currency or currency
            else:
                self.currency = self.currency or currency_code(value)
        if amount is None:
            return
        if kind == "opening":
            self.opening = amount
        else:
            self.closing = amount
            self.closing_date = self._day_in(" ".join([label, *values])) or self.closing_date

    def _learn_account(self, label: str, values: list[str]) -> None:
        for value in values:
            if match := _IBAN.search(value):
                self.iban = self.iban or compact_iban(match[0])
                rest = value.replace(match[0], "").strip(" /-")
                self.name = self.name or clean(rest) or (clean(label) if "iban" not in comparable(label) else None)
                return
        for value in values:
            if sum(character.isdigit() for character in value) >= 4 and not _DAY.search(value):
                number, _, name = value.partition(" / ")
                self.account = self.account or clean(hidden_card_number(number))
                self.name = self.name or clean(name)
                return
            self.name = self.name or clean(value)

    def _day_in(self, text: str) -> date | None:
        for written in reversed(_DAY.findall(text)):
            for read in (self.read_day, _read_any_day):
                try:
                    return read(written)
                except ValueError:
                    continue
        return None
