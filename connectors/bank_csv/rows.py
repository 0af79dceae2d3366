"""The rows of a bank's table, each of which becomes a booking."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from analytics.records import TransactionRecord
from connectors.bank_csv.amounts_and_dates import date_reader, decimal_mark, fitting_formats, read_amount
from connectors.bank_csv.cell_kinds import kinds
from connectors.bank_csv.column_places import conditions, from_the_right, label_pattern, place_of, split_by_label
from connectors.bank_csv.currencies import one_currency
from connectors.bank_csv.profile import JOINED, Mark, comparable
from connectors.bank_csv.recognition import RecognisedFile
from connectors.bank_csv.vocabulary import CLOSING_WORDS, OPENING_WORDS, PENDING_WORDS, TOTAL_WORDS, column_currency
from connectors.connector import MalformedFile, UnsupportedFile
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    currency_of,
    parse_bic,
    parse_creditor_id,
    reference,
)

_CURRENCY = re.compile("[A-Z]{3}")


_TOTAL_CELLS_MAX = 4  # of a line of totals: its word, an amount, a currency, a debit or credit mark
_FIGURES = {"date", "value_date", "amount", "debit", "credit", "indicator", "fee", "currency", "balance"}


def _mcc(text: str) -> str | None:
    digits = text.strip()
    is_code = digits.isascii() and digits.isdigit() and len(digits) < 5 and int(digits) > 0
    return digits.zfill(4) if is_code else None


# record field, field of the profile, function from the cell to the value
_PLAN: tuple[tuple[str, str, Callable[[str], str | None]], ...] = (
    ("counterpart_iban", "counterpart_iban", compact_iban),
    ("counterpart_bic", "counterpart_bic", parse_bic),
    ("counterpart_bank_name", "counterpart_bank", clean),
    ("creditor_id", "creditor_id", parse_creditor_id),
    ("debitor_id", "debitor_id", clean_key),
    ("mandate_reference", "mandate", clean_key),
    ("end_to_end_id", "end_to_end_id", clean_key),
    ("purpose", "purpose", clean_purpose),
    ("purpose_code", "purpose_code", partial(clean, characters=4)),
    ("gvc", "gvc", partial(clean, characters=3)),
    ("mcc", "mcc", _mcc),
    ("bank_text", "bank_text", clean),
    ("merchant_name", "merchant", clean),
)


class Booking(NamedTuple):
    """A booking, and the other facts in its row: number and name of the account as written, empty for none, and the
    balance after it. One that is not `is_dated` has date.min as booking date until the caller finds a day."""

    record: TransactionRecord
    account: str
    account_name: str
    balance: Decimal | None
    is_dated: bool


class Note(Struct, frozen=True):
    """A row that is not a booking: a label, a balance, a remark, or a booking to be left out."""

    cells: Sequence[str]
    amount: Decimal | None = None
    day: date | None = None
    is_skipped: bool = False


class RowReader:
    """Reads the rows of one table. `currency` is the one stated above the table, None for none; a currency in the name
    of a column comes before it, and one in a row before both."""

    def __init__(self, file: RecognisedFile, *, currency: str | None) -> None:
        profile = file.profile
        self._profile = profile
        names = [comparable(name) for name in file.names]
        self.width = len(names) if names else len(profile.shape)
        while self.width and names and not names[self.width - 1]:
            self.width -= 1
        self.places = {
            field: [place for text in references if (place := place_of(text, names)) is not None]
            for field, references in profile.columns.items()
        }
        self.places = {field: places for field, places in self.places.items() if places}
        self._pending = conditions(profile.pending, names)
        self._skip = conditions(profile.skip, names)
        self.formats = self._formats_of(file)
        self._day = date_reader(self.formats)
        self.mark: Mark = profile.decimal or self._mark_of(file)
        self.unit = next(  # the currency in the name of a column
            (
                code
                for field in ("amount", "debit", "credit", "balance")
                for place in self.places.get(field, ())
                if names and 0 <= place < len(names) and (code := column_currency(file.names[place]))
            ),
            None,
        )
        self.currency = self.unit or currency or profile.currency
        self._is_credit_negative = "amount" not in self.places and self._are_negative(file, "credit")
        self._is_debit_negative = self._are_mostly_negative(file, "debit")
        self._labels = label_pattern(profile.labels) if profile.labels else None
        self._seen: Counter[tuple[str, str]] = Counter()
        present = {*self.places, *profile.labels.values()}
        self._plan = [(name, field, cleaner) for name, field, cleaner in _PLAN if field in present]
        self._texts = [field for field in self.places if field not in _FIGURES]
        self._home: dict[str, str] = {}  # account -> currency of its country

    def read(self, row: Sequence[str], line: int) -> Booking | Note:
        """The booking in a row, or a note, if the row has no amount, states a total, or is to be left out. Raises
        MalformedFile naming the line."""
        if self._skip and any(place < len(row) and comparable(row[place]) in words for place, words in self._skip):
            return Note(row, is_skipped=True)
        text = self.cell(row, "date")
        day = self._read_day(text)
        amount_and_currency = self._amount(row)
        if amount_and_currency is None and len(row) != self.width:
            shifted = from_the_right(row, width=self.width, split=self.places.get("amount", [-1])[0])
            if shifted is not None and (realigned := self._amount(shifted)) is not None:
                row, amount_and_currency = shifted, realigned
        if amount_and_currency is None:
            return self._without_amount(row, line, day)
        amount, written = amount_and_currency
        is_dated = day is not None
        if day is None:
            day = self._read_day(self.cell(row, "value_date"))
            word = comparable(text).rstrip(" :")
            if word in TOTAL_WORDS | OPENING_WORDS | CLOSING_WORDS:
                return Note(row, amount)
            if word not in PENDING_WORDS and (text.strip() or day is None):
                if not text.strip() and sum(1 for cell in row if cell.strip()) <= _TOTAL_CELLS_MAX:
                    return Note(row, amount)  # a line of totals without a date
                raise MalformedFile("Line {line}: the booking date cannot be read.", line=line)
        is_pending = not is_dated or any(
            place < len(row) and comparable(row[place]) in words for place, words in self._pending
        )
        currency = self._currency(written or self.cell(row, "currency").strip(), line) or self.currency
        return self._booking(row, day or date.min, amount, currency, is_pending=is_pending, is_dated=day is not None)

    def _currency(self, text: str, line: int) -> str | None:
        """The currency that stands beside the amount or in the row's column; a bank may keep wallets in what is none,
        but a guess takes no such code. Raises MalformedFile."""
        code = one_currency(text) if text else None
        if text and code is None and self._profile.name == "generic":
            raise MalformedFile("Line {line}: the currency cannot be read.", line=line)
        return code or (text.upper() if _CURRENCY.fullmatch(text.upper()) else None)

    def _booking(
        self, row: Sequence[str], day: date, amount: Decimal, currency: str | None, *, is_pending: bool,
        is_dated: bool,
    ) -> Booking:  # fmt: skip
        texts = {field: text for field in self._texts if (text := self._text(row, field))}
        if self._labels:
            self._take_labels(texts)
        get = texts.get
        account = get("account", "")
        if currency is None:
            currency = self._home.get(account) or self._home.setdefault(account, currency_of(compact_iban(account)))
        party = get("name") or (get("payee") or get("payer") if amount < 0 else get("payer") or get("payee"))
        weak = reference("bank", get("reference")) if "reference" in texts else None
        original = self._original(texts, currency)
        values = {name: cleaner(cell) for name, field, cleaner in self._plan if (cell := get(field))}
        record = TransactionRecord(
            amount=amount,
            currency=currency,
            booking_date=day,
            value_date=self._read_day(self.cell(row, "value_date")),
            status="pending" if is_pending else "booked",
            provider_id=self._provider_id(account + currency, get("id")),
            references=(weak,) if weak else (),
            counterpart_name=clean(party),
            original_amount=original[0] if original else None,
            original_currency=original[1] if original else None,
            **values,  # type: ignore[arg-type]  # texts of a record, by its own field names
        )
        return Booking(record, account, get("account_name", ""), self._balance(row), is_dated)

    def _take_labels(self, texts: dict[str, str]) -> None:
        """Move the texts after the profile's labels from the purpose to the fields that the labels stand for."""
        assert self._labels is not None
        parts = split_by_label(texts.get("purpose", ""), self._labels)
        purpose = [parts.pop("", "")]
        for label, value in parts.items():
            field = self._profile.labels[label]
            if field == "purpose":
                purpose.append(value)
            elif value:
                texts.setdefault(field, value)
        texts["purpose"] = " ".join(filter(None, purpose))

    def _original(self, texts: Mapping[str, str], booked: str) -> tuple[Decimal, str] | None:
        """The amount before conversion, with the sign as written, and its currency; None where one of them is missing
        or cannot be read, or where it is the `booked` currency."""
        if "original_amount" not in texts:
            return None
        try:
            amount, written = read_amount(texts["original_amount"], self.mark)
        except ValueError:
            return None
        code = written or texts.get("original_currency", "").strip().upper()
        return (amount, code) if _CURRENCY.fullmatch(code) and code != booked else None

    def _amount(self, row: Sequence[str]) -> tuple[Decimal, str | None] | None:
        """The amount of a row, with its sign and less its fee, and the currency beside it (None for none); None where a
        cell that is needed cannot be read or has no amount."""
        places = self.places
        written = None
        try:
            if "amount" in places and (text := self.cell(row, "amount").strip()):
                amount, written = read_amount(text, self.mark)
            elif "debit" in places or "credit" in places:
                debit, credit = self.cell(row, "debit").strip(), self.cell(row, "credit").strip()
                if not debit and not credit:
                    return None
                outgoing, code = read_amount(debit, self.mark) if debit else (Decimal(0), None)
                amount, written = read_amount(credit, self.mark) if credit else (Decimal(0), None)
                amount = -amount if self._is_credit_negative else amount
                amount -= abs(outgoing) if self._is_debit_negative else outgoing
                written = written or code
            else:
                return None
            fee = abs(read_amount(text, self.mark)[0]) if (text := self.cell(row, "fee").strip()) else Decimal(0)
        except ValueError:
            return None
        if "indicator" in places:
            word = comparable(self.cell(row, "indicator"))
            if word in self._profile.debit_words:
                amount = -abs(amount)
            elif word in self._profile.credit_words:
                amount = abs(amount)
        amount = (-amount if self._profile.is_inverted else amount) - fee
        return amount.scaleb(-2) if self._profile.is_in_minor_units else amount, written

    def _without_amount(self, row: Sequence[str], line: int, day: date | None) -> Note:
        """A row without a readable amount, as a note. Raises MalformedFile where it looks like a cut or damaged
        booking."""
        cells = [self.cell(row, field).strip() for field in ("amount", "debit", "credit") if field in self.places]
        if (
            day is not None
            and any(cells)
            and not all(comparable(cell) in ("-", "--", "n/a", "offen") for cell in cells)
        ):
            raise MalformedFile("Line {line}: the amount cannot be read.", line=line)
        if day is not None and len(row) < self.width and not any(cells):
            raise MalformedFile(
                "Line {line}: the row ends after {count} of {width} columns.",
                count=len(row),
                line=line,
                width=self.width,
            )
        return Note(row, self._balance(row), day)

    def _balance(self, row: Sequence[str]) -> Decimal | None:
        balance = self._optional_amount(self.cell(row, "balance"))
        return balance.scaleb(-2) if balance is not None and self._profile.is_in_minor_units else balance

    def _optional_amount(self, text: str | None) -> Decimal | None:
        try:
            return read_amount(text, self.mark)[0] if text and text.strip() else None
        except ValueError:
            return None

    def _read_day(self, text: str) -> date | None:
        if not text:
            return None
        try:
            return self._day(text)
        except ValueError:
            return None

    def _provider_id(self, account: str, text: str | None) -> str | None:
        """The bank's own id in `text`, None for none or a placeholder. One that occurs again in the account gets a
        number, so that no booking is lost."""
        key = clean_key(text)
        if key is None:
            return None
        self._seen[account, key] += 1
        return key if self._seen[account, key] == 1 else f"{key}|{self._seen[account, key]}"

    def cell(self, row: Sequence[str], field: str) -> str:
        """The first filled cell of a field's columns in a row; empty where there is none."""
        width = len(row)
        for place in self.places.get(field, ()):
            if -width <= place < width and (text := row[place]):
                return text
        return ""

    def _text(self, row: Sequence[str], field: str) -> str:
        if field not in JOINED:
            return self.cell(row, field)
        cells = (row[place] for place in self.places[field] if -len(row) <= place < len(row))
        return ("|" if field == "id" else " ").join(cell for cell in cells if cell.strip())

    def _formats_of(self, file: RecognisedFile) -> Sequence[str]:
        """The profile's date formats; where day and month could be swapped, only the one that this file uses. Raises
        UnsupportedFile."""
        formats = file.profile.date
        if len(formats) < 2 or not any(text.startswith("MM") for text in formats):
            return formats
        samples = [cell for row in file.sample if "date" in kinds(cell := self.cell(row, "date"))]
        try:
            return fitting_formats(formats, samples) or formats[:1]
        except ValueError:
            raise UnsupportedFile("Day and month of the dates cannot be told apart.") from None

    def _are_negative(self, file: RecognisedFile, field: str) -> bool:
        """Whether every amount of a column in the first rows is written with a minus (Citi: the credits of a card);
        False where there is none."""
        amounts = self._amounts_of(file, field)
        return bool(amounts) and max(amounts) < 0

    def _are_mostly_negative(self, file: RecognisedFile, field: str) -> bool:
        """Whether a minus in the column is how its amounts are written, and not that of a reversal among others."""
        amounts = self._amounts_of(file, field)
        return not amounts or 2 * sum(amount < 0 for amount in amounts) > len(amounts)

    def _amounts_of(self, file: RecognisedFile, field: str) -> list[Decimal]:
        return [amount for row in file.sample if (amount := self._optional_amount(self.cell(row, field)))]

    def _mark_of(self, file: RecognisedFile) -> Mark:
        """The decimal mark, found in the first rows, for a profile that does not state it; where they leave it open or
        disagree, a comma if semicolons separate the columns, else a point."""
        cells = [self.cell(row, field) for row in file.sample for field in ("amount", "debit", "credit")]
        try:
            return decimal_mark(cells) or ("," if file.delimiter == ";" else ".")
        except ValueError:
            return "," if file.delimiter == ";" else "."
