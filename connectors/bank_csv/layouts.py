"""The layout of a CSV file that follows no shared profile, as reported to its user: how its columns were read, and
why."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from analytics.messages import Message, message
from connectors.bank_csv.amounts_and_dates import currency_beside, sides_beside
from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.cell_kinds import is_booking, kinds
from connectors.bank_csv.guessing import is_balance
from connectors.bank_csv.profile import LAYOUT_CHARACTERS_MAX, Mark, comparable, profile_json
from connectors.bank_csv.recognition import RecognisedFile
from connectors.bank_csv.rows import RowReader
from connectors.connector import UnsupportedFile
from connectors.limits import COLUMNS_MAX
from connectors.text import clean, compact_iban

UNSIGNED = (
    "No amount of this file has a minus, and nothing in it says what was spent. Import it with a layout that says how"
    " its signs are meant."
)
NO_TABLE = "This is no CSV file, so a layout says nothing of it."
GUESSED = "Guessed: "  # the beginning of a sentence about a guess
EXAMPLE_CHARACTERS_MAX = 80
NAME_CHARACTERS_MAX = 200

Sign = Literal["written", "words", "columns", "balance", "stated", "turned", "unknown"]
CurrencySource = Literal["column", "header", "file", "amounts", "account", "layout", "assumed"]


class LayoutColumn(Struct, frozen=True, kw_only=True):
    """One column: its name in the file, the field that it was read as (None: it was not), and an example of its
    content."""

    name: str
    field: str | None
    example: str


class CsvLayout(Struct, frozen=True, kw_only=True):
    """The way in which a file was read: its columns in order, the evidence for its signs, and the source of its
    currency.

    `profile` is the JSON text of a profile that reads files with these columns in the same way; None where it is longer
    than 4,000 characters.
    """

    is_guessed: bool
    has_header: bool
    columns: tuple[LayoutColumn, ...]
    sign: Sign
    currency: str | None
    currency_source: CurrencySource
    decimal: Mark
    dates: tuple[str, ...]
    other_reading: tuple[str, str] | None = None  # a word as it was read, and as another code page would
    profile: str | None

    def columns_in_words(self, *fields: str) -> str | None:
        """The names of the columns read as one of these fields, in quotes and joined by " + "; None where there is
        none."""
        return " + ".join(f'"{column.name}"' for column in self.columns if column.field in fields) or None


OnLayout = Callable[[CsvLayout], None]


def layout_of(
    file: RecognisedFile,
    above: Metadata,
    *,
    is_signed: bool,
    currency: str | None,
    other_reading: tuple[str, str] | None = None,
) -> CsvLayout:
    """The layout by which a file was read. `is_signed` says that it has a negative amount, `currency` is that of its
    bookings, `above` has the facts above its table, `other_reading` is as in CsvLayout."""
    reader = RowReader(file, currency=None)
    fields = {place: name for name, places in reader.places.items() for place in places}
    width = len(file.names) or reader.width
    return CsvLayout(
        is_guessed=file.profile.name == "generic",
        has_header=bool(file.names),
        columns=tuple(
            LayoutColumn(
                name=_name(file.names, place),
                field=fields.get(place, fields.get(place - width)),
                example=_example(file.sample, place),
            )
            for place in range(min(width, COLUMNS_MAX))
        ),
        sign=_sign(file, reader, is_signed=is_signed),
        currency=currency,
        currency_source=_currency_source(file, reader, above),
        decimal=reader.mark,
        dates=tuple(reader.formats),
        profile=_as_profile(file, width),
        other_reading=other_reading,
    )


def guess_in_words(layout: CsvLayout) -> Message:
    """One sentence that says what was guessed, for reports in text form."""
    columns = [
        Message(template, names=names)
        for template, fields in _COLUMNS.items()
        if (names := layout.columns_in_words(*fields))
    ]
    signs = message(_SIGNS[layout.sign])
    currency = Message(_CURRENCIES[layout.currency_source], currency=layout.currency)
    if not layout.other_reading:
        return Message(GUESSED + "{columns}; {signs}; {currency}.", columns=columns, signs=signs, currency=currency)
    read, other = layout.other_reading
    doubt = Message('"{read}" may also be "{other}"', read=read, other=other)
    return Message(
        GUESSED + "{columns}; {signs}; {currency}; {doubt}.",
        columns=columns,
        signs=signs,
        currency=currency,
        doubt=doubt,
    )


def guesses_in_words(layouts: Iterable[CsvLayout]) -> list[Message]:
    """A sentence for each guessed layout."""
    return [guess_in_words(each) for each in layouts if each.is_guessed]


def check_layouts(layouts: Sequence[CsvLayout], *, is_chosen: bool = False) -> None:
    """Raise UnsupportedFile where a file was read without knowing which amounts were spent, because too much money
    would be wrong; and with `is_chosen`, which says that the user chose a layout, also where `layouts` is empty,
    because the file is then no CSV file."""
    if is_chosen and not layouts:
        raise UnsupportedFile(NO_TABLE)
    if any(each.sign == "unknown" and each.currency for each in layouts):
        raise UnsupportedFile(UNSIGNED)


_COLUMNS = {
    "booking date from {names}": ("date",),
    "amount from {names}": ("amount",),
    "outgoing from {names}": ("debit",),
    "incoming from {names}": ("credit",),
    "payee or payer from {names}": ("name", "payer", "payee"),
    "purpose from {names}": ("purpose",),
    "account from {names}": ("account", "account_name"),
    "the account of payee or payer from {names}": ("counterpart_iban",),
}
_SIGNS = {
    "written": "signs as written",
    "words": "signs by the words of a column",
    "columns": "signs by the columns",
    "balance": "signs proved by the balance",
    "stated": "signs as the layout says",
    "turned": "signs turned round, as the layout says",
    "unknown": "signs unknown",
}
_CURRENCIES = {
    "column": "currency {currency} of a column",
    "header": "currency {currency} of the header",
    "file": "currency {currency} named above the table",
    "amounts": "currency {currency} written beside the amounts",
    "account": "currency {currency} of the account's country",
    "layout": "currency {currency} of the layout",
    "assumed": "currency {currency} assumed, as the file names none",
}


def _as_profile(file: RecognisedFile, width: int) -> str | None:
    """The profile of the file as JSON, a guessed one with the file's own column names or, without names, the kinds of
    its columns, so that it fits files like this one; None where it is too long."""
    profile = file.profile
    if profile.standing == "shared":
        names = dict.fromkeys(filter(None, map(comparable, file.names)))
        shape = () if names else tuple(_kind(file.sample, place) for place in range(width))
        profile = replace(profile, header=tuple((name,) for name in names), shape=shape)
    text = profile_json(profile)
    return text if len(text) <= LAYOUT_CHARACTERS_MAX else None


def _kind(sample: Sequence[Sequence[str]], place: int) -> str:
    """The kind of a column in a table without names, for the shape of its profile: "date", "amount" or "figure"
    (amounts, some left blank) if all its bookings fit, else "any"; so for digits alone, which may be no amounts."""
    cells = [row[place] if place < len(row) else "" for row in sample if is_booking(row)]
    common = set.intersection(*map(kinds, cells))
    if "date" in common:
        return "date"
    is_money = any(mark in cell for cell in cells for mark in ",.-+")
    return next((kind for kind in ("amount", "figure") if is_money and kind in common), "any")


def _name(names: Sequence[str], place: int) -> str:
    """The name of a column in a profile: with a number where the name occurs before, and "@" with its place where it
    has none."""
    name = clean(names[place], NAME_CHARACTERS_MAX) if names else None
    if name is None:
        return f"@{place + 1}"
    count = sum(clean(other, NAME_CHARACTERS_MAX) == name for other in names[: place + 1])
    return name if count == 1 else f"{name}#{count}"


def _example(sample: Sequence[Sequence[str]], place: int) -> str:
    cells = (clean(row[place], EXAMPLE_CHARACTERS_MAX) for row in sample if place < len(row))
    return next((cell for cell in cells if cell), "")


def _sign(file: RecognisedFile, reader: RowReader, *, is_signed: bool) -> Sign:
    if file.profile.is_inverted:
        return "turned"
    if "indicator" in reader.places:
        return "words"
    if "amount" not in reader.places and {"debit", "credit"} & set(reader.places):
        return "columns"
    rows = [(reader.cell(row, "amount").strip(), reader.cell(row, "balance").strip()) for row in file.sample]
    if is_signed or any("+" in amount or sides_beside(amount) for amount, _ in rows):
        return "written"
    if file.profile.name != "generic":
        return "stated"
    rows = [(amount, balance) for amount, balance in rows if amount and balance]
    return "balance" if is_balance([row[0] for row in rows], [row[1] for row in rows], reader.mark) else "unknown"


def _currency_source(file: RecognisedFile, reader: RowReader, above: Metadata) -> CurrencySource:
    """The source of the currency: the first that applies, in the order in which `RowReader` looks."""
    is_known = file.profile.currency is not None
    cells = [reader.cell(row, field) for row in file.sample for field in ("amount", "debit", "credit")]
    sources: tuple[tuple[bool, CurrencySource], ...] = (
        (any(map(currency_beside, cells)), "amounts"),
        ("currency" in reader.places, "column"),
        (reader.unit is not None, "header"),
        (above.currency is not None or (is_known and file.profile.name == "generic"), "file"),
        (any(map(compact_iban, [above.iban, *(reader.cell(row, "account") for row in file.sample)])), "account"),
        (is_known, "layout"),
    )
    return next((source for holds, source in sources if holds), "assumed")
