"""Who is paid, however banks, card terminals and intermediaries write it (docs/recurring.md, "Who is paid")."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.classification.intermediaries import are_intermediaries
from analytics.letters import fold
from analytics.recurring import left_out_words
from analytics.recurring.noise_words import DROPPED_WORDS
from analytics.recurring.payees import behind_intermediary, key_of
from analytics.search_text import fold_column

Row = dict[str, object]


def key(text: str, note: str | None = None) -> str:
    """The payee key of a text."""
    frame = pl.DataFrame({"text": [text], "note": [note]}, schema={"text": pl.String, "note": pl.String})
    said = fold_column(pl.col("text"))
    behind = behind_intermediary(said, fold_column(pl.col("note")), via=are_intermediaries(said))
    return str(frame.select(key_of(behind)).item())


@pytest.mark.requirement("subscriptions.payee")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Nordlicht Energie GmbH", "NORDLICHT ENERGIE"),
        ("Müller & Söhne KG", "Mueller und Soehne"),
        ("Čistírna Nová s.r.o.", "CISTIRNA NOVA"),
        ("KINO PALAST 4711 KÖLN", "Kino Palast//Berlin/DE"),
        ("STREAMBOX.COM 866-716-0414", "Streambox"),
        ("STREAMBOX*7KX22A9", "StreamBox"),
        ("PAYPAL *STREAMBOX", "streambox.com"),
        ("SumUp *Salon Beck", "Salon Beck"),
        ("Stichting Zonnewind B.V.", "stichting zonnewind"),
    ],
)
def test_two_ways_of_writing_one_payee_have_one_key(one: str, other: str) -> None:
    assert key(one) == key(other)


@pytest.mark.requirement("subscriptions.payee")
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("PayPal Europe S.a.r.l. et Cie S.C.A", "1039 PP.1234.PP . STREAMBOX, Ihr Einkauf bei STREAMBOX"),
        ("PayPal Europe S.a.r.l. et Cie S.C.A", "1039/PP.1234.PP/. STREAMBOX, Ihr Einkauf bei STREAMBOX EREF: 55"),
        ("PAYPAL EUROPE 1039 PP.12.PP . STREAMBOX, Ihr Einkauf bei STREAMBOX", None),
        ("Klarna Bank AB", "Zahlung an STREAMBOX, 12345"),
        ("Mollie Payments", "aankoop bij StreamBox"),
        ("PAYPAL *STREAMBOX*PLUS", None),
    ],
)
def test_behind_an_intermediary_stands_the_payee(text: str, note: str | None) -> None:
    assert key(text, note) == "streambox"


@pytest.mark.requirement("subscriptions.payee")
def test_nothing_but_an_intermediary_is_the_intermediary() -> None:
    assert key("PayPal Europe", "1039 reference") == "paypal"
    assert key("4711") == "4711"
    assert key("GmbH") == "gmbh"


@pytest.mark.requirement("subscriptions.payee")
@pytest.mark.parametrize(
    "rows",
    [
        [{"counterpart_name": "Nordlicht GmbH"}, {"counterpart_name": "NORDLICHT"}, {"purpose": "Nordlicht Abschlag"}],
        [
            {"counterpart_name": "Stadtwerk", "counterpart_iban": "DE02"},
            {"purpose": "Abschlag", "counterpart_iban": "DE02"},
        ],
        [{"counterpart_name": "Funkhaus"}, {"counterpart_name": "Beitragsservice", "merchant_name": "Funkhaus"}],
        [
            {"counterpart_name": "Kabel", "mandate_reference": "M"},
            {"counterpart_name": "Netz", "mandate_reference": "M"},
        ],
        [{"counterpart_iban": "DE02"}, {"counterpart_iban": "DE02"}],
        [{"mandate_reference": "M"}, {"mandate_reference": "M"}],
    ],
)
def test_names_ibans_mandates_and_enriched_names_tie_charges_together(
    rows: list[Row], charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    months = [date(2026, month, 15) for month in range(6, 12)]
    varied = [
        {"booking_date": day, "amount": Decimal("-57.30"), **rows[number % len(rows)]}
        for number, day in enumerate(months)
    ]
    assert [stream["occurrences"] for stream in said(charges_from(varied))] == [6]


@pytest.mark.requirement("subscriptions.payee")
def test_one_mandate_of_an_intermediary_is_no_contract_with_its_shops(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    shops = ["KINO", "BUCHLADEN", "PIZZERIA", "STREAMBOX", "BLUMEN", "RADHAUS"]
    rows: list[Row] = [
        {
            "booking_date": date(2026, 6 + number, 15),
            "amount": Decimal(f"-{17 + 9 * number}.40"),
            "counterpart_name": "PayPal Europe S.a.r.l. et Cie S.C.A",
            "counterpart_iban": "LU89751000135104200E",
            "mandate_reference": "PP-1",
            "purpose": f"PP.1.PP . {shop}, Ihr Einkauf bei {shop}",
        }
        for number, shop in enumerate(shops)
    ]
    assert said(charges_from(rows)) == []


@pytest.mark.requirement("decision 21")
@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"merchant_name": "Streambox", "counterpart_name": "STREAMBOX.COM 0815"}, "Streambox"),
        ({"merchant_name": "PayPal", "counterpart_name": "PAYPAL *STREAMBOX"}, "STREAMBOX"),
        ({"counterpart_name": "Hausverwaltung Süd", "purpose": "Miete"}, "Hausverwaltung Süd"),
        ({"counterpart_name": "STREAMBOX 44870021 BERLIN"}, "STREAMBOX"),
        ({"counterpart_name": "Streambox//Berlin/DE"}, "Streambox"),
        ({"purpose": "Miete und Nebenkosten"}, "Miete und Nebenkosten"),
        ({"creditor_id": "DE98ZZZ09999999999", "mandate_reference": "M"}, "DE98ZZZ09999999999"),
        ({"counterpart_iban": "DE02120300000000202051"}, "DE02120300000000202051"),
        ({"mandate_reference": "M"}, "Unknown"),
        ({}, "Unknown"),
    ],
)
def test_the_name_is_the_enriched_one_else_what_the_bank_wrote(
    row: Row, name: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    rows: list[Row] = [
        {"booking_date": date(2026, month, 15), "amount": Decimal("-57.30"), **row} for month in range(6, 12)
    ]
    assert [stream["merchant_name"] for stream in said(charges_from(rows))] == [name]


@pytest.mark.requirement("subscriptions.payee")
def test_without_a_name_the_account_says_more_than_words_that_many_payees_share(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    rows: list[Row] = [
        {
            "booking_date": date(2026, month, day),
            "amount": Decimal(amount),
            "purpose": "Beitrag",
            "counterpart_iban": iban,
        }
        for month in (9, 10, 11)
        for day, amount, iban in ((5, "-61.00", "DE0210010010000001"), (14, "-24.00", "DE0210010010000002"))
    ]
    assert [stream["amount"] for stream in said(charges_from(rows))] == [Decimal("61.00"), Decimal("24.00")]


@pytest.mark.requirement("decision 21")
def test_the_name_is_that_of_the_last_row_that_has_one(
    history: Callable[..., pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    (stream,) = said(
        history("""
            date       | amount | name           | purpose            | mandate
            2026-08-15 | -57.30 | NORDLICHT      | Abschlag           | N-1
            2026-09-15 | -57.30 | Nordlicht GmbH | Abschlag           | N-1
            2026-10-15 | -57.30 |                | Nordlicht Abschlag | N-1
            2026-11-15 | -57.30 |                | Abschlag           | N-1
        """)
    )
    assert stream["merchant_name"] == "Nordlicht GmbH"


@pytest.mark.requirement("subscriptions.users")
@pytest.mark.long
def test_a_user_alone_hears_what_the_user_hears_in_company(
    charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    def rows(user: str) -> list[Row]:
        names = ["Nordlicht", "NORDLICHT GMBH", "Nordlicht Energie", "nordlicht"]
        return [
            {
                "user_id": user,
                "id": f"{user}{number}",
                "booking_date": date(2026, 4 + number, 15),
                "amount": Decimal("-57.30"),
                "counterpart_name": names[number % 4],
            }
            for number in range(8)
        ]

    company = said(charges_from([row for number in range(30) for row in rows(f"user{number:02}-")]))
    for number in range(30):
        user = f"user{number:02}-"
        assert said(charges_from(rows(user))) == [stream for stream in company if stream["user_id"] == user]


@pytest.mark.requirement("subscriptions.payee")
def test_words_are_looked_for_in_the_letters_that_texts_are_folded_to() -> None:
    patterns = [pattern for _, pattern in left_out_words.PATTERNS]
    assert len(patterns) >= 9
    assert len({topic for topic, _ in left_out_words.PATTERNS}) >= 8
    assert [pattern for pattern in patterns if fold(pattern) != pattern] == []
    assert [word for word in DROPPED_WORDS if fold(word) != word] == []
