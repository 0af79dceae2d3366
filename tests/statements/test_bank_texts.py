"""Texts, amounts, dates and keys as banks write them."""

import unicodedata
from datetime import date
from decimal import Decimal
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.reference.gvc import bank_transaction_code_of
from connectors.text import (
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    currency_of,
    day_or_month_end,
    is_currency,
    is_placeholder,
    parse_amount,
    parse_bic,
    parse_creditor_id,
    parse_date,
    parse_iban,
    reference,
)
from tests.conftest import examples

BOUNDED = settings(max_examples=examples(200))


@pytest.mark.requirement("security.text")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, None),
        ("", None),
        (" \t\r\n ", None),
        ("  a   b\n c ", "a b c"),
        ("a\x00\x1b[31mb", "a[31mb"),
        ("a\u202eb\u2066c\u200bd\ufeffe", "abcde"),
        ("Mu\u0308ller", "M\u00fcller"),
        ("x" * 141, "x" * 140),
    ],
)
def test_a_text_is_one_visible_line(written: str | None, expected: str | None) -> None:
    assert clean(written) == expected


@BOUNDED
@pytest.mark.requirement("security.text")
@given(st.text(max_size=300))
def test_cleaning_twice_changes_nothing_and_leaves_nothing_invisible(text: str) -> None:
    once = clean(text)
    if once is not None:
        assert clean(once) == once
        assert len(once) <= 140
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in once)


@pytest.mark.requirement("readers.camt.purpose")
def test_repeated_lines_of_a_purpose_stand_once_and_it_ends_at_2000_characters() -> None:
    assert clean_purpose("a", None, " b ", "a") == "a b"
    assert clean_purpose() is None
    assert len(clean_purpose(*(f"{number:09d}" for number in range(1000))) or "") == 1999
    assert len(clean_purpose("x" * 2001) or "") == 2000


@pytest.mark.requirement("readers.references")
@pytest.mark.parametrize(
    "key",
    [
        "NONREF",
        "nonref",
        "NOTPROVIDED",
        "NOT PROVIDED",
        "Not-Provided",
        "KEINE",
        "-",
        "0",
        "0000000000",
        "N/A",
        "XXXX",
        "2,02600E+13",
        "2.026E+13",
        "2E+13",
    ],
)
def test_placeholders_stand_for_nothing(key: str) -> None:
    assert is_placeholder(key)
    assert clean_key(key) is None
    assert reference("servicer", key) is None


@pytest.mark.requirement("readers.references")
@pytest.mark.parametrize("key", ["2026013000000017", "0001", "ABC", "A-1", "E2E"])
def test_keys_are_kept_with_their_kind(key: str) -> None:
    assert reference("txid", f" {key} ") == f"txid:{key}"


@pytest.mark.requirement("readers.amounts")
@pytest.mark.parametrize(
    ("written", "mark", "amount"),
    [
        ("12.34", ".", "12.34"),
        ("12,34", ",", "12.34"),
        ("-0,5", ",", "-0.5"),
        ("+7", ".", "7"),
        ("\u22127,00", ",", "-7"),
        (",5", ",", "0.5"),
        ("5,", ",", "5"),
        ("1.234.567,89", ",", "1234567.89"),
        ("1,234.5", ".", "1234.5"),
        ("1'234.50", ".", "1234.5"),
        ("1\u2019234.50", ".", "1234.5"),
        ("1\u00a0234,50", ",", "1234.5"),
        ("123456789012345", ".", "123456789012345"),
        ("1234567890123.45000", ".", "1234567890123.45"),
        ("0.00001", ".", "0.00001"),
    ],
)
def test_amounts_are_exact(written: str, mark: Literal[",", "."], amount: str) -> None:
    assert parse_amount(written, mark) == Decimal(amount)


@pytest.mark.requirement("readers.amounts")
@pytest.mark.parametrize(
    "written",
    ["", " ", ".", "-", "--1", "1-", "1e5", "NaN", "Infinity", "0x10", "1_000", "12,34", "1,23,456", "1.2.3", "\u0661",
     "1234567890123456", "12345678901234.12", "1 2"],
)  # fmt: skip
def test_what_is_no_amount_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="amount"):
        parse_amount(written)


@BOUNDED
@pytest.mark.requirement("readers.amounts")
@given(st.decimals(min_value=-(10**9), max_value=10**9, places=4))
def test_an_amount_written_in_any_country_is_the_same(amount: Decimal) -> None:
    assert parse_amount(f"{amount:f}") == amount
    assert parse_amount(f"{amount:,}") == amount
    german = f"{amount:,}".replace(",", " ").replace(".", ",").replace(" ", ".")
    assert parse_amount(german, ",") == amount


@pytest.mark.requirement("readers.dates")
def test_a_time_keeps_its_own_calendar_day() -> None:
    assert parse_date(" 2026-01-31T23:59:59-10:00 ") == date(2026, 1, 31)
    for bad in ("2026-02-30", "31.01.2026", "", "1899-12-31", "2200-01-01"):
        with pytest.raises(ValueError, match=r".+"):
            parse_date(bad)


@pytest.mark.requirement("readers.dates")
@pytest.mark.parametrize(
    ("day", "expected"),
    [((2026, 2, 30), (2026, 2, 28)), ((2024, 2, 31), (2024, 2, 29)), ((2025, 11, 31), (2025, 11, 30))],
)
def test_a_day_after_the_end_of_the_month_is_its_last(
    day: tuple[int, int, int], expected: tuple[int, int, int]
) -> None:
    assert day_or_month_end(*day) == date(*expected)


@pytest.mark.requirement("readers.dates")
@pytest.mark.parametrize("day", [(2026, 13, 30), (2026, 0, 30), (2026, 2, 32), (2026, 1, 0)])
def test_other_days_that_do_not_exist_are_refused(day: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        day_or_month_end(*day)


@pytest.mark.requirement("readers.keys")
def test_ibans_bics_and_creditor_ids_are_checked() -> None:
    assert parse_iban("de89 3704 0044 0532 0130 00") == "DE89370400440532013000"
    assert parse_iban("DE89370400440532013001") is None
    assert compact_iban("DE89 3704 0044 0532 0130 01") == "DE89370400440532013001"
    assert compact_iban("12345") is None
    assert parse_bic("cobadeffxxx") == "COBADEFFXXX"
    assert parse_bic("37040044") is None
    assert parse_creditor_id("DE98 ZZZ 09999999999") == "DE98ZZZ09999999999"
    assert parse_creditor_id("DE98ABC09999999999") == "DE98ABC09999999999"
    assert parse_creditor_id("DE97ZZZ09999999999") is None


@pytest.mark.requirement("readers.accounts")
def test_a_currency_that_is_not_stated_is_the_country_s_else_the_home_currency() -> None:
    assert currency_of("CH9300762011623852957") == "CHF"
    assert currency_of(None, "BREXPLPW") == "PLN"
    assert currency_of("DE89370400440532013000") == currency_of(None) == "EUR"


@pytest.mark.requirement("readers.gvc")
@pytest.mark.parametrize(
    ("gvc", "is_credit", "code"),
    [
        ("105", False, "PMNT-RDDT-ESDD"),
        ("116", False, "PMNT-ICDT-ESCT"),
        ("166", True, "PMNT-RCDT-ESCT"),
        ("153", True, "PMNT-RCDT-SALA"),
        ("117", False, "PMNT-ICDT-STDO"),
        ("106", False, "PMNT-CCRD-POSD"),
        ("083", False, "PMNT-CNTR-CWDL"),
        ("820", False, "PMNT-ICDT-BOOK"),
        ("820", True, "PMNT-RCDT-BOOK"),
        ("999", False, None),
        (None, True, None),
    ],
)
def test_a_gvc_is_an_iso_code_by_its_sign(gvc: str | None, is_credit: bool, code: str | None) -> None:
    assert bank_transaction_code_of(gvc, is_credit=is_credit) == code


@pytest.mark.requirement("live.provider")
@pytest.mark.parametrize(
    ("said", "expected"), [("EUR", True), ("XXX", False), ("eur", False), ("EURO", False), ("", False), (None, False)]
)
def test_a_currency_is_three_capital_letters_that_do_not_mean_none(said: object, expected: bool) -> None:
    assert is_currency(said) is expected
