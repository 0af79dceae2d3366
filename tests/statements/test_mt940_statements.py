"""MT940 and MT942 as a whole: balances, accounts, blocks, encodings."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from connectors.connector import MalformedFile
from connectors.mt940.reader import detect, read
from tests.statements.conftest import booking

Text = Callable[..., str]
Gather = Callable[..., Any]


@pytest.mark.requirement("readers.mt940.balances")
@pytest.mark.parametrize(
    ("closing", "amount", "adds_up"),
    [
        (":62F:C260131EUR87,66", "87.66", True),
        (":62M:C260131EUR87,66", "87.66", True),
        (":62F:D260131EUR87,66", "-87.66", False),
        (":62F:C260131EUR87,67", "87.67", False),
        ("", None, False),
    ],
)
def test_closing_balances_and_whether_they_add_up(
    closing: str, amount: str | None, adds_up: bool, found: Gather, block: Text
) -> None:
    (statement,) = found(read, block(booking(), closing=closing)).statements
    assert statement.closing == (Decimal(amount) if amount else None)
    assert (statement.is_authoritative, statement.opening) == (adds_up, Decimal(100))
    assert statement.sequence == "00001/001"


@pytest.mark.requirement("readers.mt940.balances")
def test_available_balances_are_not_the_balance(found: Gather, block: Text) -> None:
    text = block(booking(), closing=":62F:C260131EUR87,66\n:64:C260131EUR999,00\n:65:C260201EUR999,00")
    assert found(read, text).statements[0].closing == Decimal("87.66")


@pytest.mark.requirement("readers.mt942")
def test_an_interim_report_books_nothing(found: Gather, block: Text) -> None:
    text = block(booking(), opening=":34F:CHFD0,00\n:13D:2601301200+0100", closing=":90D:1CHF12,34")
    result = found(read, text)
    assert (result.only.status, result.only.currency) == ("pending", "CHF")
    assert result.statements[0].closing is None


@pytest.mark.requirement("readers.mt940.accounts")
@pytest.mark.parametrize(
    ("written", "key", "iban"),
    [
        ("37040044/0532013000", "37040044/0532013000", None),
        ("DE89370400440532013000", "DE89370400440532013000", "DE89370400440532013000"),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "DE89370400440532013000"),
        ("DE89370400440532013000EUR", "DE89370400440532013000", "DE89370400440532013000"),
        ("NL91ABNA0417164300 EUR", "NL91ABNA0417164300", "NL91ABNA0417164300"),
        ("0000000000", "0000000000", None),
        ("TRIODOSBANK/0390123456", "TRIODOSBANK/0390123456", None),
    ],
)
def test_the_account_is_an_iban_where_it_is_one(
    written: str, key: str, iban: str | None, found: Gather, block: Text
) -> None:
    (account,) = found(read, block(booking(), account=written)).accounts
    assert (account.stable_key, account.iban, account.currency) == (key, iban, "EUR")


@pytest.mark.requirement("readers.mt940.accounts")
def test_a_statement_that_names_no_currency_has_its_country_s(found: Gather, block: Text) -> None:
    swiss = block(booking(), account="CH9300762011623852957", opening="")
    assert found(read, swiss).only.currency == "CHF"
    assert found(read, block(booking(), account="1", opening="")).only.currency == "EUR"
    late = block(booking(), account="1", opening="", closing=":62F:C260131SEK1,00")
    assert found(read, late).only.currency == "SEK"


@pytest.mark.requirement("readers.mt940")
def test_every_block_is_a_statement_whatever_stands_around_it(found: Gather, block: Text) -> None:
    envelope = "{1:F01COBADEFFXXXX0000000000}{2:I940COBADEFFXXXXN}{4:\r\n"
    text = (
        envelope
        + block(booking(), end="-}{5:{CHK:1}}")
        + "ABNANL2A\n940\nABNANL2A\n"
        + block(booking() + "\n" + booking())
    )
    result = found(read, text)
    assert len(result.statements) == 2
    assert len(result.transactions) == 3


@pytest.mark.requirement("readers.mt940")
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r", "\r\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
def test_line_ends_and_encodings(end: str, encoding: str, found: Gather, block: Text) -> None:
    data = block(booking("Käse\nbrot")).replace("\r\n", end).encode(encoding)
    assert detect(data)
    assert found(read, data).only.purpose == "Käse brot"


@pytest.mark.requirement("readers.mt940")
def test_the_text_of_a_fints_answer_marks_its_line_ends(found: Gather, block: Text) -> None:
    data = ("\r\n" + block(booking("Käse\nbrot") + "\n" + booking("a@b"))).replace("\r\n", "\n").replace("\n", "@@")
    assert detect(data.encode("cp1252"))
    assert [row.purpose for row in found(read, data.encode("cp1252")).transactions] == ["Käse brot", "a@b"]
    assert found(read, block(booking("a@@b"))).only.purpose == "a@@b"


@pytest.mark.requirement("readers.mt940.balances")
@pytest.mark.parametrize("field", [":62F:Dnullnull7414,3", ":62F:"])
def test_an_empty_balance_is_not_stated(field: str, found: Gather, block: Text) -> None:
    assert found(read, block(booking(), closing=field)).statements[0].closing is None


@pytest.mark.requirement("readers.mt940.balances")
def test_the_euro_of_a_balance_may_be_spelled_out(found: Gather, block: Text) -> None:
    result = found(read, block(booking(), closing=":62F:C260131EURO87,66"))
    assert (result.statements[0].closing, result.accounts[0].currency) == (Decimal("87.66"), "EUR")
    with pytest.raises(MalformedFile, match="a balance that cannot be read"):
        found(read, block(booking(), closing=":62F:C260131CHFO87,66"))


@pytest.mark.requirement("readers.mt940.balances")
def test_a_balance_of_no_day_still_counts(found: Gather, block: Text) -> None:
    (statement,) = found(read, block(booking(), closing=":62F:C000000EUR87,66")).statements
    assert (statement.closing, statement.closing_date) == (Decimal("87.66"), None)
    with pytest.raises(MalformedFile, match="a balance with not an amount"):
        found(read, block(booking(), closing=":62F:C260131EUR8,7,6"))


@pytest.mark.requirement("readers.mt940.account")
def test_three_capitals_behind_a_number_that_is_no_iban_stay_with_it(found: Gather, block: Text) -> None:
    assert found(read, block(booking(), account="4711EUR")).accounts[0].stable_key == "4711EUR"


@pytest.mark.requirement("readers.mt940")
def test_a_block_may_end_twice(found: Gather, block: Text) -> None:
    assert found(read, block(booking(), end="-\n-")) == found(read, block(booking()))


@pytest.mark.requirement("readers.mt940")
@pytest.mark.parametrize("empty", [":20:FIRST\r\n", ":20:FIRST\r\n:86:a remark\r\n-\r\n"])
def test_a_block_that_says_nothing_is_no_statement_of_an_account_without_name(
    empty: str, found: Gather, block: Text
) -> None:
    alone = found(read, block(booking()))
    assert found(read, empty + block(booking())) == alone
    assert found(read, block(booking()) + empty) == alone


@pytest.mark.requirement("readers.mt940.statements")
@pytest.mark.parametrize("stray", ["\x1a", "- ", "-", "\xff", "x ", "-}"])
@pytest.mark.parametrize("tag", [":20:", ":25:", ":60F:", ":61:"])
def test_what_stands_before_a_tag_neither_joins_two_accounts_nor_loses_a_booking(
    stray: str, tag: str, found: Gather, block: Text
) -> None:
    other = block(booking(), account="DE02120300000000202051", end="")
    result = found(read, (block(booking("a"), end="") + other.replace(tag, stray + tag)).encode("latin-1"))
    assert [account.stable_key for account in result.accounts] == ["37040044/0532013000", "DE02120300000000202051"]
    assert [str(row.amount) for row in result.transactions] == ["-12.34", "-12.34"]


@pytest.mark.requirement("readers.mt940.statements")
def test_a_statement_begins_with_its_account_or_goes_on_where_the_last_one_closed(found: Gather, block: Text) -> None:
    first = block(booking(), closing=":62F:C260131EUR87,66", end="")
    for lost in (1, 2):  # its :20: alone, then :20: and :25:
        text = block(booking(), account="1", opening=":60F:C260201EUR87,66", end="").split("\r\n", lost)[lost]
        result = found(read, first + text)
        account = "1" if lost == 1 else "37040044/0532013000"
        assert [each.stable_key for each in result.accounts] == ["37040044/0532013000", account]
        assert [each.opening for each in result.statements] == [Decimal(100), Decimal("87.66")]
    with pytest.raises(MalformedFile, match=re.escape("line 8: a second opening balance that names no account.")):
        found(read, first + ":28C:1\r\n:60F:C260201EUR87,65")


@pytest.mark.requirement("readers.mt940.statements")
def test_a_time_of_day_in_a_text_begins_no_statement(found: Gather, block: Text) -> None:
    result = found(read, block(booking("Abfahrt\n:25:30 Uhr\nUm 12:20:30 oder\n- :20:45")))
    assert result.only.purpose == "Abfahrt :25:30 Uhr Um 12:20:30 oder - :20:45"
