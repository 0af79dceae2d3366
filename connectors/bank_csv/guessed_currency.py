"""The currency of an unknown layout: what its columns, its amounts and the lines above it say or leave open."""

import re
from collections.abc import Iterator, Mapping, Sequence

from connectors.bank_csv.amounts_and_dates import currencies_beside, has_odd_unit
from connectors.bank_csv.column_places import cells_of, place_of, references
from connectors.bank_csv.currencies import currencies_called, currency_in, one_currency
from connectors.bank_csv.profile import comparable
from connectors.bank_csv.vocabulary import column_currencies, column_currency, column_field, label_kind
from connectors.text import currency_code

Row = Sequence[str]
Fields = dict[str, tuple[str, ...]]
_MONEY = ("amount", "debit", "credit", "balance")
_NO_DIGIT = re.compile("[^0-9]")
_SPEAKS_OF_MONEY = re.compile("amount|betrag|wahrung|currenc|importe|montant|kwot|belop|belob|bedrag|valut|moned|devis")
_BEHIND_ACCOUNT = re.compile(r"[\s(]([A-Z]{3})\)?$")
_PARTS = re.compile("[:;,\t|]")
OPEN = "the currency of the amounts cannot be told"


def settle_currency(
    fields: Fields, header: Row, data: Sequence[Row], preamble: Sequence[Row]
) -> tuple[str | None, list[str]]:
    """Keep in `fields` as the currency only a column of currencies (ISO 4217), whatever its name; a column of countries
    is none. Returns the currency that the file states beside such a column, None for none, and what is in doubt: cells
    that are no currency, and signs such as "$" that several currencies share, unless something else says which."""
    booked = [text for field in ("amount", "debit", "credit") for text in fields.get(field, ())]
    amounts = cells_of(booked, header, data)
    units = [column_currencies(cell) for cell in header if column_field(cell) in _MONEY]
    called = [each for each in (*_said_above(preamble), *units, *map(currencies_beside, amounts)) if each]
    stated = next((next(iter(each)) for each in called if len(each) == 1), None)
    doubts = _settle_column(fields, header, data, is_stated=stated is not None)
    if any(map(has_odd_unit, amounts)):
        doubts.append("what stands beside the amounts is no currency")
    shared = [each for each in called if len(each) > 1]
    in_column = {code for cell in cells_of(fields.get("currency", ()), header, data) if (code := one_currency(cell))}
    known = in_column or ({stated} if stated else set())
    if shared and known and not all(code in each for each in shared for code in known):
        doubts.append(OPEN)
    elif shared and not known:
        common = frozenset.intersection(*shared)
        if len(common) == 1:
            return next(iter(common)), doubts
        doubts.append(OPEN)
    return stated, doubts


def take_foreign_currency(fields: Fields, header: Row, data: Sequence[Row]) -> tuple[str | None, list[str]]:
    """Make a column of currencies that of the original amounts in `fields`, where the name of the booked amounts has a
    currency, or where it follows them and rows that were not converted are in one currency at most. Returns that, and
    what is in doubt: where they are in several and others were converted."""
    names = [comparable(cell) for cell in header]
    places = {name: place for name in fields if (place := place_of(fields[name][0], names)) is not None}
    booked = [places[each] for each in ("amount", "debit", "credit") if each in places]
    original, currency = places.get("original_amount"), places.get("currency")
    if not booked or original is None or currency is None or "original_currency" in fields:
        return None, []
    home, is_any_converted = set[str](), False
    for row in data:
        cells = dict(enumerate(row))
        amounts = {_NO_DIGIT.sub("", cells.get(place, "")) for place in booked}
        told = _NO_DIGIT.sub("", cells.get(original, ""))
        if told.strip("0") and told not in amounts:
            is_any_converted = True
        elif any(each.strip("0") for each in amounts):
            home.add(one_currency(cells.get(currency, "")) or "")
    home.discard("")
    if column_currency(header[booked[0]]) is None:
        if currency != original + 1 or (len(home) > 1 and not is_any_converted):
            return None, []
        if len(home) > 1:
            return None, [OPEN]
    fields["original_currency"] = fields.pop("currency")
    return (home.pop() if len(home) == 1 else None), []


def _settle_column(fields: Fields, header: Row, data: Sequence[Row], *, is_stated: bool) -> list[str]:
    """Keep in `fields` the column of currencies: the one of that name if it holds any, else one that is called
    "Valuta", which may be the value date, else, unless a currency is stated elsewhere, the only one with a single code
    in all rows. Returns what is in doubt."""
    for field in ("currency", "value_date"):
        cells = set(cells_of(fields.get(field, ()), header, data))
        called = [currencies_called(cell) for cell in cells]
        if any(called):
            fields["currency"] = fields.pop(field)
            return [] if all(len(each) == 1 for each in called) else [OPEN]
    if cells_of(fields.pop("currency", ()), header, data):
        return ["the column of currencies names none that is known"]
    if is_stated:
        return []
    found = {}
    for reference, cell in references(header):
        filled = cells_of((reference,), header, data)
        is_full = len(filled) * 2 > len(data) and all(each.isupper() and currency_code(each) for each in set(filled))
        if column_field(cell) is None and is_full:
            found[reference] = set(filled)
    if len({frozenset(each) for each in found.values()}) == 1:
        reference, codes = next(iter(found.items()))
        if len(codes) == 1:
            fields["currency"] = (reference,)
            return []
    return [OPEN] if found else []


def _said_above(preamble: Sequence[Row]) -> Iterator[frozenset[str]]:
    """The currencies that lines above the table may mean: beside a label such as "Moneda", in a line that speaks of
    amounts, behind the number of the account."""
    for row in preamble:
        filled = [cell.strip() for cell in row if cell.strip()]
        parts = [part.strip() for cell in filled for part in _PARTS.split(cell) if part.strip()]
        if not parts:
            continue
        kind = label_kind(parts[0])
        if kind == "currency" and len(parts) > 1:
            code = currency_in(parts[1])
            yield frozenset({code}) if code else currencies_called(parts[1])
        elif (kind == "account" and (code := _code_behind(filled[-1]))) or (
            len(filled) == 1 and _SPEAKS_OF_MONEY.search(comparable(filled[0])) and (code := currency_in(filled[0]))
        ):
            yield frozenset({code})


def _code_behind(text: str) -> str | None:
    match = _BEHIND_ACCOUNT.search(text)
    return currency_code(match[1]) if match else None


def is_mixed(fields: Mapping[str, Sequence[str]], header: Row, data: Sequence[Row]) -> bool:
    """Whether the column of currencies names several."""
    return len({cell.strip().upper() for cell in cells_of(fields["currency"], header, data)}) > 1


def only_currency(fields: Mapping[str, Sequence[str]], header: Row, data: Sequence[Row]) -> str | None:
    """The only one that the column of currencies names, which its empty cells mean, too; None for none or several."""
    named = {one_currency(cell) for cell in cells_of(fields.get("currency", ()), header, data)}
    return named.pop() if len(named) == 1 else None
