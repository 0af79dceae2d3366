"""One row of a bank's table becomes one booking."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from connectors.connector import MalformedFile, UnsupportedFile
from connectors.csv_layout import Layout
from connectors.csv_profiles import JOINED, Mark, plain
from connectors.csv_shapes import kinds
from connectors.csv_values import date_reader, decimal_mark, fitting_formats, read_amount
from connectors.csv_words import PENDING_WORDS, column_currency
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    parse_bic,
    parse_creditor_id,
    reference,
)
from storage.records import TransactionRecord

_CURRENCY = re.compile("[A-Z]{3}")


class Booking(NamedTuple):
    """A booking and what its row says beside it."""

    record: TransactionRecord
    account: str
    account_name: str
    balance: Decimal | None
    is_dated: bool


@dataclass(frozen=True, slots=True)
class Note:
    """A row that is not a booking: a label, a balance, a remark, or a booking that never happened."""

    cells: Sequence[str]
    amount: Decimal | None = None
    day: date | None = None
    is_skipped: bool = False


class RowReader:
    """Reads the rows of one table by its layout. `currency` is what the file says above the table."""

    def __init__(self, layout: Layout, *, currency: str | None) -> None:
        profile = layout.profile
        self._profile = profile
        names = [plain(name) for name in layout.names]
        self.width = len(names) if names else len(profile.shape)
        while self.width and names and not names[self.width - 1]:
            self.width -= 1
        self.places = {
            field: [place for text in references if (place := _place(text, names)) is not None]
            for field, references in profile.columns.items()
        }
        self.places = {field: places for field, places in self.places.items() if places}
        self._pending = _conditions(profile.pending, names)
        self._skip = _conditions(profile.skip, names)
        self._day = date_reader(self._formats_of(layout))
        self.mark: Mark = profile.decimal or self._mark_of(layout)
        unit = next(
            (
                code
                for field in ("amount", "debit", "credit", "balance")
                for place in self.places.get(field, ())
                if names and 0 <= place < len(names) and (code := column_currency(layout.names[place]))
            ),
            None,
        )
        self.currency = unit or currency or profile.currency
        self._labels = _label_pattern(profile.labels) if profile.labels else None
        self._seen: Counter[tuple[str, str]] = Counter()
        self._optional = [
            field
            for field in self.places
            if field
            not in ("date", "value_date", "amount", "debit", "credit", "indicator", "fee", "currency", "balance")
        ]

    def read(self, row: Sequence[str], line: int) -> Booking | Note:
        """The booking of a row, or the row as a note. Raises MalformedFile naming the line."""
        if self._skip and any(place < len(row) and plain(row[place]) in words for place, words in self._skip):
            return Note(row, is_skipped=True)
        text = self._cell(row, "date")
        day = self._read_day(text)
        found = self._amount(row)
        if found is None and len(row) != self.width:
            shifted = self._from_the_right(row)
            if shifted is not None and (realigned := self._amount(shifted)) is not None:
                row, found = shifted, realigned
        if found is None:
            return self._without_amount(row, line, day)
        amount, written = found
        is_dated = day is not None
        if day is None:
            day = self._read_day(self._cell(row, "value_date"))
            if plain(text) not in PENDING_WORDS and (text.strip() or day is None):
                if not text.strip():
                    return Note(row, amount)  # a line of totals has no date
                raise MalformedFile(f"Line {line}: the booking date cannot be read.")
        is_pending = not is_dated or any(
            place < len(row) and plain(row[place]) in words for place, words in self._pending
        )
        return self._booking(row, day or date.min, amount, written, is_pending=is_pending, is_dated=day is not None)

    def _booking(
        self, row: Sequence[str], day: date, amount: Decimal, written: str | None, *, is_pending: bool,
        is_dated: bool,
    ) -> Booking:  # fmt: skip
        value_date = self._read_day(self._cell(row, "value_date"))
        texts = {field: self._text(row, field) for field in self._optional}
        get = texts.get
        purpose = get("purpose") or ""
        if self._labels and (parts := _labelled(purpose, self._labels)):
            purpose = parts.pop("", "")
            for label, value in parts.items():
                field = self._profile.labels[label]
                if field == "purpose":
                    purpose = f"{purpose} {value}".strip()
                else:
                    texts.setdefault(field, value)
                    texts[field] = texts[field] or value
        column = self._cell(row, "currency").strip().upper()
        currency = written or (column if _CURRENCY.fullmatch(column) else None) or self.currency or ""
        name = get("name") or (get("payee") or get("payer") if amount < 0 else get("payer") or get("payee"))
        account = get("account") or ""
        original = self._optional_amount(get("original_amount"))
        key = clean_key(get("provider_id")) or self._provider_id(account + currency, get("id"))
        mcc = (get("mcc") or "").strip()
        weak = reference("bank", get("reference"))
        record = TransactionRecord(
            amount=amount,
            currency=currency,
            booking_date=day,
            value_date=value_date,
            status="pending" if is_pending else "booked",
            provider_id=key,
            references=(weak,) if weak else (),
            counterpart_name=clean(name),
            counterpart_iban=compact_iban(get("counterpart_iban")),
            counterpart_bic=parse_bic(get("counterpart_bic")),
            counterpart_bank_name=clean(get("counterpart_bank")),
            creditor_id=parse_creditor_id(get("creditor_id")),
            debitor_id=clean_key(get("debitor_id")),
            mandate_reference=clean_key(get("mandate")),
            end_to_end_id=clean_key(get("end_to_end_id")),
            purpose=clean_purpose(purpose),
            bank_transaction_code=clean(get("bank_transaction_code"), 35),
            purpose_code=clean(get("purpose_code"), 4),
            gvc=clean(get("gvc"), 3),
            swift_code=clean(get("swift_code"), 16),
            mcc=mcc.zfill(4) if mcc.isascii() and mcc.isdigit() and len(mcc) < 5 and int(mcc) else None,
            bank_text=clean(get("bank_text")),
            merchant_name=clean(get("merchant")),
            original_amount=original,
            original_currency=_code(get("original_currency")) if original is not None else None,
        )
        return Booking(record, account, get("account_name") or "", self._balance(row), is_dated)

    def _amount(self, row: Sequence[str]) -> tuple[Decimal, str | None] | None:
        """The signed amount of a row and its currency; None when no cell holds one."""
        places = self.places
        written = None
        try:
            if "amount" in places and (text := self._cell(row, "amount").strip()):
                amount, written = read_amount(text, self.mark)
            elif "debit" in places or "credit" in places:
                debit, credit = self._cell(row, "debit").strip(), self._cell(row, "credit").strip()
                if not debit and not credit:
                    return None
                outgoing, code = read_amount(debit, self.mark) if debit else (Decimal(0), None)
                amount, written = read_amount(credit, self.mark) if credit else (Decimal(0), None)
                amount, written = amount - abs(outgoing), written or code
            else:
                return None
            if fee := self._cell(row, "fee").strip():
                amount -= abs(read_amount(fee, self.mark)[0])
        except ValueError:
            return None
        if "indicator" in places:
            word = plain(self._cell(row, "indicator"))
            if word in self._profile.debit_words:
                amount = -abs(amount)
            elif word in self._profile.credit_words:
                amount = abs(amount)
        if self._profile.is_in_minor_units:
            amount = amount.scaleb(-2)
        return (-amount if self._profile.is_inverted else amount), written

    def _without_amount(self, row: Sequence[str], line: int, day: date | None) -> Note:
        """A row without a readable amount is a note, unless it looks like a booking that was cut or is damaged."""
        cells = [self._cell(row, field).strip() for field in ("amount", "debit", "credit") if field in self.places]
        if day is not None and any(cells) and not all(plain(cell) in ("-", "--", "n/a", "offen") for cell in cells):
            raise MalformedFile(f"Line {line}: the amount cannot be read.")
        last = max(place for field in ("amount", "debit", "credit") for place in self.places.get(field, [-1]))
        if day is not None and last >= 0 and len(row) <= last and len(row) > 1:
            raise MalformedFile(f"Line {line}: the row ends after {len(row)} of {self.width} columns.")
        return Note(row, self._balance(row), day)

    def _from_the_right(self, row: Sequence[str]) -> list[str] | None:
        """A row with one cell too many or too few, its end put under the end of the header (N26, Bank Pocztowy)."""
        missing = self.width - len(row)
        if not self.width or abs(missing) > 3 or "amount" not in self.places:
            return None
        split = min(self.places["amount"][0], len(row))
        if missing > 0:
            cut = max(split - missing, 0)
            return [*row[:cut], *[""] * missing, *row[cut:]]
        joined = ", ".join(cell for cell in row[split - 1 : split - missing] if cell) if split else ""
        return [*row[: max(split - 1, 0)], joined, *row[split - missing :]]

    def _balance(self, row: Sequence[str]) -> Decimal | None:
        balance = self._optional_amount(self._cell(row, "balance"))
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
        """The bank's own id; a repeated one gets its ordinal, so that no booking is lost."""
        key = clean_key(text)
        if key is None:
            return None
        self._seen[account, key] += 1
        return key if self._seen[account, key] == 1 else f"{key}|{self._seen[account, key]}"

    def _cell(self, row: Sequence[str], field: str) -> str:
        for place in self.places.get(field, ()):
            if place < len(row) and -len(row) <= place and (text := row[place]):
                return text
        return ""

    def _text(self, row: Sequence[str], field: str) -> str:
        if field not in JOINED:
            return self._cell(row, field)
        cells = (row[place] for place in self.places[field] if -len(row) <= place < len(row))
        return ("|" if field == "id" else " ").join(cell for cell in cells if cell.strip())

    def _formats_of(self, layout: Layout) -> Sequence[str]:
        """The profile's date formats; where day and month could be swapped, the one that this file uses."""
        formats = layout.profile.date
        if len(formats) < 2 or not any(text.startswith("MM") for text in formats):
            return formats
        samples = [cell for row in layout.sample if "date" in kinds(cell := self._cell(row, "date"))]
        try:
            return fitting_formats(formats, samples) or formats[:1]
        except ValueError:
            raise UnsupportedFile("Day and month of the dates cannot be told apart.") from None

    def _mark_of(self, layout: Layout) -> Mark:
        """The decimal mark of a layout that leaves it open, from its first rows."""
        cells = [self._cell(row, field) for row in layout.sample for field in ("amount", "debit", "credit")]
        try:
            return decimal_mark(cells) or ("," if layout.delimiter == ";" else ".")
        except ValueError:
            return "," if layout.delimiter == ";" else "."


def _place(text: str, names: Sequence[str]) -> int | None:
    """The index of a column: "@3" counts from 1 (from the end when negative), "name#2" is the second of its name."""
    if text.startswith("@"):
        number = int(text[1:])
        return number - 1 if number > 0 else number
    name, _, ordinal = text.partition("#")
    places = [index for index, other in enumerate(names) if other == name]
    wanted = int(ordinal) if ordinal.isdigit() else 1
    return places[wanted - 1] if wanted <= len(places) else None


def _conditions(conditions: Mapping[str, tuple[str, ...]], names: Sequence[str]) -> list[tuple[int, frozenset[str]]]:
    found = []
    for name, words in conditions.items():
        place = _place(name, names)
        if place is not None:
            found.append((place, frozenset(words)))
    return found


def _label_pattern(labels: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(
        r"(?:^|(?<=[\s,;]))(" + "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True)) + r"):?\s"
    )


def _labelled(text: str, pattern: re.Pattern[str]) -> dict[str, str]:
    """label -> text behind it; what stands before the first label under ""."""
    pieces = pattern.split(f"{text} ")
    parts = {"": pieces[0].strip()}
    for label, value in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.setdefault(label, value.strip(" ,;"))
    return parts


def _code(text: str | None) -> str | None:
    code = (text or "").strip().upper()
    return code if _CURRENCY.fullmatch(code) else None
