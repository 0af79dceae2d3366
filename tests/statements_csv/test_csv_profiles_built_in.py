"""Every built-in profile reads a file of its own layout, and no other profile takes it away."""

import io
from decimal import Decimal

import pytest

from analytics.records import TransactionRecord
from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.profile import Profile, built_in_profiles

DAYS = {"YYYY": "2026", "YY": "26", "MMM": "Mar", "MM": "03", "DD": "17"}
CELLS = {
    "currency": "EUR",
    "account": "DE02120300000000202051",
    "counterpart_iban": "DE02100500000054540402",
    "mcc": "5411",
    "gvc": "005",
    "balance": "100{mark}00",
    "fee": "",
    "bank_text": "ET",
    "original_amount": "",
}


def day(profile: Profile) -> str:
    text = profile.date[0]
    for token, value in DAYS.items():
        text = text.replace(token, value)
    return text


def cell(profile: Profile, field: str, *, is_debit: bool) -> str:
    mark = profile.decimal or "."
    figure = "1250" if profile.is_in_minor_units else f"12{mark}50"
    if field in ("date", "value_date"):
        return day(profile)
    if field == "amount":
        is_negative = is_debit and "indicator" not in profile.columns
        return ("-" if is_negative != profile.is_inverted else "") + figure
    if field in ("debit", "credit"):
        return figure if (field == "debit") == is_debit else ""
    if field == "indicator":
        words = profile.debit_words if is_debit else profile.credit_words
        return words[0] if words else ""
    return CELLS.get(field, f"some {field}").format(mark=mark)


SHAPE_CELLS = {"digits": "42132000000000", "amount": "100.00", "currency": "EUR", "mark": "*"}


def rendered(profile: Profile) -> str:
    """A file with this layout's header and two bookings, or two rows of its shape."""
    delimiter = profile.delimiter or (";" if profile.decimal == "," else ",")
    places: dict[str, str] = {}
    for field, references in profile.columns.items():
        for reference in references:
            places.setdefault(reference, field)
    if profile.shape:
        rows = []
        for is_debit in (True, False):
            row = [
                {
                    "digits": "42132000000000",
                    "amount": "100.00",
                    "currency": "EUR",
                    "date": day(profile),
                    "mark": "*",
                }.get(kind, "")
                for kind in profile.shape
            ]
            for reference, field in places.items():
                row[int(reference[1:]) - 1] = cell(profile, field, is_debit=is_debit)
            for index, kind in enumerate(profile.shape):
                if kind == "digits":
                    row[index] = "42132000000000"
            rows.append(row)
    else:
        names = [spellings[0] for spellings in profile.header]
        numbered = sorted(int(reference[1:]) for reference in places if reference.startswith("@"))
        for reference in places:
            base = reference.partition("#")[0]
            if not reference.startswith("@") and (base not in names or "#" in reference):
                if any(base in spellings for spellings in profile.header) and "#" not in reference:
                    continue
                names.append(base)
        while numbered and len(names) < numbered[-1]:
            names.append("")
        seen: dict[str, int] = {}
        rows = [names]
        for is_debit in (True, False):
            row, seen = [], {}
            for index, name in enumerate(names):
                seen[name] = seen.get(name, 0) + 1
                reference = name if seen[name] == 1 else f"{name}#{seen[name]}"
                found = places.get(reference) or places.get(f"@{index + 1}")
                spelling = next((group for group in profile.header if name in group), ())
                found = found or next((places[other] for other in spelling if other in places), None)
                row.append(cell(profile, found, is_debit=is_debit) if found else "x")
            rows.append(row)
    return "\n".join(delimiter.join(f'"{text}"' for text in row) for row in rows) + "\n"


READABLE = [profile for profile in built_in_profiles() if not profile.is_ignored]


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize("profile", READABLE, ids=lambda profile: profile.name)
def test_a_file_of_a_built_in_layout_is_recognised_and_read(profile: Profile) -> None:
    file = (
        rendered(profile).encode(profile.encoding, "replace")
        if profile.encoding != "cp1252"
        else rendered(profile).encode()
    )
    explanation = csv_statements.explain(io.BytesIO(file))
    assert explanation.profile == profile.name, explanation.why
    amounts = [
        record.amount for record in csv_statements.read(io.BytesIO(file)) if isinstance(record, TransactionRecord)
    ]
    assert amounts == [Decimal("-12.50"), Decimal("12.50")]


@pytest.mark.requirement("readers.csv.profiles")
def test_at_least_a_hundred_layouts_are_built_in() -> None:
    assert len(READABLE) >= 100
