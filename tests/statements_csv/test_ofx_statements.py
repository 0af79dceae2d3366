"""OFX 1.x and 2.x statements become accounts, bookings and a closing balance."""

import io
from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import MalformedFile, SourceError, UnsupportedFile
from connectors.ofx import reader as ofx
from connectors.ofx.tokens import declared_charset, tokens

SGML = """OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS><DTSERVER>20260201<LANGUAGE>ENG
<FI><ORG>Seaside Bank<FID>77</FI></SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><TRNUID>1<STATUS><CODE>0<SEVERITY>INFO</STATUS><STMTRS><CURDEF>USD
<BANKACCTFROM><BANKID>110000000<ACCTID>556677<ACCTTYPE>SAVINGS</BANKACCTFROM>
<BANKTRANLIST><DTSTART>20260101<DTEND>20260131
{bookings}
</BANKTRANLIST><LEDGERBAL><BALAMT>{balance}<DTASOF>20260131235959[-5:EST]</LEDGERBAL>
</STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
"""
BOOKING = "<STMTTRN><TRNTYPE>{kind}<DTPOSTED>{day}<TRNAMT>{amount}<FITID>{id}<NAME>{name}<MEMO>{memo}</STMTTRN>"


def booking(
    *,
    amount: str = "-1.00",
    day: str = "20260115",
    id: str = "A1",
    name: str = "Shop",
    memo: str = "",
    kind: str = "POS",
) -> str:
    return BOOKING.format(amount=amount, day=day, id=id, name=name, memo=memo, kind=kind)


def statement(*bookings: str, balance: str = "10.00") -> bytes:
    return SGML.format(bookings="\n".join(bookings), balance=balance).encode("cp1252")


def records(file: bytes) -> list[Record]:
    return list(ofx.read(io.BytesIO(file)))


def bookings_of(file: bytes) -> list[TransactionRecord]:
    return [record for record in records(file) if isinstance(record, TransactionRecord)]


@pytest.mark.requirement("readers.ofx")
def test_an_sgml_statement_without_closing_tags_is_read_whole() -> None:
    file = statement(booking(amount="-12.30", day="20260105120000.000[-5:EST]", memo="Two &amp; three"))
    assert ofx.detect(file)
    assert records(file) == [
        AccountRecord(stable_key="110000000/556677", currency="USD", kind="savings", bank_name="Seaside Bank"),
        TransactionRecord(
            amount=Decimal("-12.30"),
            currency="USD",
            booking_date=date(2026, 1, 5),
            provider_id="A1|2026-01-05|-12.3",
            counterpart_name="Shop",
            purpose="Two & three",
            swift_code="POS",
        ),
        StatementRecord(closing=Decimal("10.00"), closing_date=date(2026, 1, 31)),
    ]


@pytest.mark.requirement("readers.ofx")
def test_an_xml_card_statement_keeps_only_the_ends_of_the_card_number() -> None:
    file = b"""<?xml version="1.0" encoding="UTF-8"?><?OFX OFXHEADER="200" VERSION="203"?><OFX><CREDITCARDMSGSRSV1>
    <CCSTMTTRNRS><CCSTMTRS><CURDEF>AUD</CURDEF><CCACCTFROM><ACCTID>4000001234567899</ACCTID></CCACCTFROM>
    <BANKTRANLIST><STMTTRN><TRNTYPE>DEBIT</TRNTYPE><DTPOSTED>20260102</DTPOSTED><DTUSER>20260101</DTUSER>
    <TRNAMT>-3</TRNAMT><FITID>9</FITID><PAYEE><NAME>Caf\xc3\xa9</NAME></PAYEE><SIC>5814</SIC>
    <MEMO><![CDATA[a<b & c]]></MEMO></STMTTRN></BANKTRANLIST></CCSTMTRS></CCSTMTTRNRS></CREDITCARDMSGSRSV1></OFX>"""
    account, card_payment, closing = records(file)
    assert account == AccountRecord(stable_key="400000******7899", currency="AUD", kind="credit_card")
    assert isinstance(card_payment, TransactionRecord)
    assert (card_payment.counterpart_name, card_payment.mcc, card_payment.purpose) == ("Café", "5814", "a<b & c")
    assert card_payment.value_date == date(2026, 1, 1)
    assert closing == StatementRecord()


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("-12,5", "-12.5"),
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("+7", "7"),
        ("-.5", "-0.5"),
        ("1 025,53", "1025.53"),
    ],
)
def test_a_comma_or_a_point_marks_the_decimals(text: str, amount: str) -> None:
    assert bookings_of(statement(booking(amount=text)))[0].amount == Decimal(amount)


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize("text", ["NaN", "1e5", "Infinity", "", "12-", "1.234.5", "1234567890123456"])
def test_an_amount_that_cannot_be_read_refuses_the_file_and_names_the_line(text: str) -> None:
    with pytest.raises(MalformedFile, match=r"^Line 12: an amount cannot be read\.$"):
        records(statement(booking(amount=text)))


@pytest.mark.requirement("readers.ofx")
def test_a_repeated_fitid_is_told_apart_by_date_amount_and_count() -> None:
    file = statement(booking(), booking(amount="-2"), booking(day="20260116"), booking())
    assert [record.provider_id for record in bookings_of(file)] == [
        "A1|2026-01-15|-1",
        "A1|2026-01-15|-2",
        "A1|2026-01-16|-1",
        "A1|2026-01-15|-1|2",
    ]


@pytest.mark.requirement("readers.ofx")
def test_a_booking_without_date_stands_on_the_last_day_of_its_statement() -> None:
    assert bookings_of(statement(booking(day="")))[0].booking_date == date(2026, 1, 31)


@pytest.mark.requirement("readers.ofx")
def test_the_thirtieth_of_february_is_the_last_of_february() -> None:
    assert bookings_of(statement(booking(day="20260230")))[0].booking_date == date(2026, 2, 28)


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize("day", ["20261301", "20260132", "2026", "15.01.2026", "00260115"])
def test_any_other_impossible_day_refuses_the_file(day: str) -> None:
    with pytest.raises(MalformedFile, match="Line 12: a date cannot be read"):
        records(statement(booking(day=day)))


@pytest.mark.requirement("readers.ofx")
def test_an_empty_balance_says_nothing() -> None:
    assert records(statement(booking(), balance=" "))[-1] == StatementRecord()


@pytest.mark.requirement("readers.ofx")
def test_text_is_utf8_where_it_is_valid_and_the_declared_code_page_elsewhere() -> None:
    assert bookings_of(statement(booking(name="Bäcker")))[0].counterpart_name == "Bäcker"
    as_utf8 = SGML.format(bookings=booking(name="Bäcker"), balance="").encode()
    assert bookings_of(as_utf8)[0].counterpart_name == "Bäcker"
    as_utf16 = SGML.format(bookings=booking(name="Bäcker"), balance="").encode("utf-16")
    assert ofx.detect(as_utf16)
    assert bookings_of(as_utf16)[0].counterpart_name == "Bäcker"


@pytest.mark.requirement("readers.ofx")
def test_two_accounts_in_one_file_each_keep_their_own_bookings() -> None:
    one = statement(booking()).decode("cp1252")
    inner = one[one.index("<STMTTRNRS>") : one.index("</BANKMSGSRSV1>")]
    both = one.replace("</BANKMSGSRSV1>", inner.replace("556677", "889900") + "</BANKMSGSRSV1>").encode("cp1252")
    names = [
        record.stable_key if isinstance(record, AccountRecord) else type(record).__name__ for record in records(both)
    ]
    assert names == [
        "110000000/556677", "TransactionRecord", "StatementRecord",
        "110000000/889900", "TransactionRecord", "StatementRecord",
    ]  # fmt: skip


@pytest.mark.requirement("readers.ofx")
def test_cash_bookings_of_an_investment_account_are_read_and_trades_left_out() -> None:
    file = b"""<OFX><INVSTMTMSGSRSV1><INVSTMTTRNRS><INVSTMTRS><DTASOF>20260131<CURDEF>USD
    <INVACCTFROM><BROKERID>broker.example<ACCTID>77</INVACCTFROM><INVTRANLIST><DTSTART>20260101<DTEND>20260131
    <BUYMF><INVBUY><INVTRAN><FITID>1<DTTRADE>20260105</INVTRAN><UNITS>3<TOTAL>-30</INVBUY></BUYMF>
    <INVBANKTRAN><STMTTRN><TRNTYPE>DIV<DTPOSTED>20260110<TRNAMT>4.20<FITID>2<NAME>Dividend</STMTTRN>
    <SUBACCTFUND>CASH</INVBANKTRAN></INVTRANLIST></INVSTMTRS></INVSTMTTRNRS></INVSTMTMSGSRSV1></OFX>"""
    account, dividend, _ = records(file)
    assert account == AccountRecord(stable_key="broker.example/77", currency="USD", kind="securities")
    assert isinstance(dividend, TransactionRecord)
    assert dividend.amount == Decimal("4.20")


@pytest.mark.requirement("readers.ofx")
def test_a_pending_booking_of_ofx_2_2_is_pending_and_has_no_id() -> None:
    list_of_pending = (
        "</BANKTRANLIST><BANKTRANLISTP><DTASOF>20260131<STMTTRNP><TRNTYPE>POS<DTTRAN>20260130<TRNAMT>-5<NAME>Inn"
        "</STMTTRNP></BANKTRANLISTP>"
    )
    file = statement(booking()).replace(b"</BANKTRANLIST>", list_of_pending.encode(), 1)
    pending = bookings_of(file)[1]
    assert (pending.status, pending.booking_date, pending.provider_id) == ("pending", date(2026, 1, 30), None)


@pytest.mark.requirement("readers.refusal")
def test_a_sign_on_answer_without_statement_is_refused() -> None:
    file = b"OFXHEADER:100\n\n<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>15500</STATUS></SONRS></SIGNONMSGSRSV1></OFX>"
    with pytest.raises(UnsupportedFile, match="holds no account statement"):
        records(file)


@pytest.mark.requirement("readers.refusal")
def test_every_truncated_copy_is_refused() -> None:
    file = statement(booking(), booking(id="A2"))
    end = file.rindex(b"</OFX>") + len(b"</OFX>")
    for length in range(0, end - 1, 7):
        with pytest.raises(SourceError):
            records(file[:length])
    assert len(records(file[:end])) == 4


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<STMTTRN><TRNTYPE>POS", "<STMTTRM><TRNTYPE>POS", "an amount stands outside of a transaction"),
        ("</STMTTRN>\n<STMTTRN>", "\n", "a transaction has two DTPOSTED values"),
        ("<ACCTID>556677", "", "a statement names no account"),
        ("<CURDEF>USD", "<CURDEF>dollars", "a currency code cannot be read"),
        ("<OFX>", "<!DOCTYPE a [<!ENTITY b 'bb'>]><OFX>", "a document type declaration is not allowed"),
    ],
)
def test_a_damaged_tag_never_loses_a_booking_in_silence(old: str, new: str, reason: str) -> None:
    file = statement(booking(), booking(id="A2"))
    damaged = file.replace(old.encode(), new.encode(), 1)
    assert damaged != file
    with pytest.raises(MalformedFile, match=rf"^Line \d+: {reason}\.$"):
        records(damaged)


@pytest.mark.requirement("readers.ofx")
def test_a_statement_without_any_account_has_one_if_it_has_a_booking() -> None:
    begin, end = b"<BANKACCTFROM>", b"</BANKACCTFROM>"
    file = statement(booking())
    unnamed = file[: file.index(begin)] + file[file.index(end) + len(end) :]
    assert next(record for record in records(unnamed) if isinstance(record, AccountRecord)).stable_key == "unnamed"
    empty = unnamed.replace(booking().encode(), b"")
    assert empty != unnamed
    with pytest.raises(MalformedFile, match="a statement names no account"):
        records(empty)


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(
    ("balance", "day", "closing", "closing_date"),
    [
        ("R$ 5.326,43", "30/06/2026", Decimal("5326.43"), date(2026, 1, 31)),  # PagSeguro: the day of the list
        ("-R$ 5,50", "20260130", Decimal("-5.50"), date(2026, 1, 30)),
        ("1.000000", "20260130", Decimal("1.00"), date(2026, 1, 30)),
    ],
)
def test_balances_as_programs_write_them(balance: str, day: str, closing: Decimal, closing_date: date) -> None:
    file = statement(booking(), balance=balance).replace(b"<DTASOF>20260131235959[-5:EST]", f"<DTASOF>{day}".encode())
    found = next(record for record in records(file) if isinstance(record, StatementRecord))
    assert (found.closing, found.closing_date) == (closing, closing_date)


@pytest.mark.requirement("readers.ofx")
def test_a_point_alone_is_the_zero_of_a_bank_that_suppresses_zeros() -> None:
    assert bookings_of(statement(booking(amount="          .  ")))[0].amount == 0
    with pytest.raises(MalformedFile, match="an amount cannot be read"):
        records(statement(booking(amount="-")))


@pytest.mark.requirement("readers.ofx")
def test_a_forgotten_closing_tag_of_a_booking_loses_nothing() -> None:
    file = statement(booking(), booking(id="A2")).replace(b"</STMTTRN>", b"")
    assert len(bookings_of(file)) == 2


@pytest.mark.requirement("readers.detect")
@pytest.mark.parametrize("head", [b"", b"Date,Amount\n", b"<?xml version='1.0'?><Document>", b":20:X\n", b"x <OFX>"])
def test_other_files_are_not_taken_for_ofx(head: bytes) -> None:
    assert not ofx.detect(head)


@pytest.mark.requirement("readers.ofx")
def test_a_card_statement_ends_the_bank_statement_before_it_whose_end_is_missing() -> None:
    card = booking(amount="-3.00", id="C1").join(
        ("<CCSTMTRS><CURDEF>USD<CCACCTFROM><ACCTID>4000001234567899</CCACCTFROM><BANKTRANLIST>", "</CCSTMTRS>")
    )
    file = statement(booking(amount="-1.00")).replace(b"</STMTRS></STMTTRNRS></BANKMSGSRSV1>", card.encode())
    accounts = [record.stable_key for record in records(file) if isinstance(record, AccountRecord)]
    balances = [record.closing for record in records(file) if isinstance(record, StatementRecord)]
    assert len(accounts) == 2
    assert [found.amount for found in bookings_of(file)] == [Decimal("-1.00"), Decimal("-3.00")]
    assert balances == [Decimal("10.00"), None]


@pytest.mark.requirement("readers.ofx")
def test_a_booking_ends_the_pending_one_before_it_whose_end_is_missing() -> None:
    pending = booking(amount="-2.00", id="P1").replace("STMTTRN>", "STMTTRNP>").removesuffix("</STMTTRNP>")
    found = bookings_of(statement(pending + booking(amount="-1.00", id="A1")))
    assert [(each.amount, each.status) for each in found] == [
        (Decimal("-2.00"), "pending"),
        (Decimal("-1.00"), "booked"),
    ]


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_where_a_piece_of_the_file_ends_changes_nothing(
    size: int, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = statement(booking(memo="A<!-- <B> -->B<![CDATA[<C>]]>C"))
    whole = [token._replace(text=token.text.strip()) for token in tokens(io.BytesIO(file))]
    monkeypatch.setattr("connectors.lines._CHUNK_BYTES", size)
    stream = io.BytesIO(file.decode("cp1252").encode(encoding))
    pieces = tokens(stream, head=stream.read(2))
    assert [token._replace(text=token.text.strip()) for token in pieces] == whole


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(
    ("header", "codec"),
    [("CHARSET:8859-15", "iso8859-15"), ("CHARSET:8859-12", "cp1252"), ("CHARSET:1250", "cp1250"), ("", "cp1252")],
)
def test_a_charset_that_nobody_has_defined_is_read_like_none(header: str, codec: str) -> None:
    assert declared_charset(f"OFXHEADER:100\n{header}\n<OFX>".encode()) == codec


@pytest.mark.requirement("readers.ofx")
def test_an_end_without_its_beginning_is_passed_over() -> None:
    file = statement(booking(id="A1"), "</INVPOSLIST>", booking(id="A2"))
    assert records(file) == records(statement(booking(id="A1"), booking(id="A2")))


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(("extended", "name"), [("Shop of the Corner", "Shop of the Corner"), ("Shp", "Shop")])
def test_the_longer_one_of_two_names_is_the_counterpart(extended: str, name: str) -> None:
    [row] = bookings_of(statement(booking(name=f"Shop<EXTDNAME>{extended}")))
    assert row.counterpart_name == name


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("A &amp; B", "A & B"),
        ("&lt;3 -&gt; &quot;x&quot; &apos;y&apos;", "<3 -> \"x\" 'y'"),
        ("a&nbsp;b", "a b"),
        ("Caf&#233; &#xE9;t&#XE9;", "Café été"),
        ("&#0;&#xD800;&#1114112;", "���"),  # no characters
        ("AT&T R&D &unknown;", "AT&T R&D &unknown;"),  # written as they are by many programs
    ],
)
def test_entities_are_characters_and_other_ampersands_stay(written: str, name: str) -> None:
    [row] = bookings_of(statement(booking(name=written)))
    assert row.counterpart_name == name


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize(
    "written",
    [
        "20260115", "20260115230000", "20260115230000.150", "20260115230000[-5]", "20260115230000.150[-5:EST]",
        "20260115230000 [+9:JST]", "20260115230000.150[-:CST]", "20260115[0:GMT]", "2026-01-15",
    ],
)  # fmt: skip
def test_a_day_is_the_one_that_is_written_whatever_follows_it(written: str) -> None:
    [row] = bookings_of(statement(booking(day=written)))
    assert row.booking_date == date(2026, 1, 15)


@pytest.mark.requirement("readers.ofx")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_one(end: str) -> None:
    file = statement(booking(id="A1"), booking(id="A2"))
    assert records(file.replace(b"\n", end.encode())) == records(file)


@pytest.mark.requirement("readers.ofx.amounts")
def test_three_digits_behind_the_only_mark_of_dollars_are_in_doubt_until_another_amount_shows_its_decimals() -> None:
    reason = "Line 12: decimals and thousands of an amount cannot be told apart."
    for file in (
        statement(booking(amount="-1,250")),
        statement(booking(amount="-1.250"), booking(amount="3,50"), balance=""),
        statement(booking(amount="-1.00"), balance="12,345"),
    ):
        with pytest.raises(MalformedFile) as refusal:
            records(file)
        assert str(refusal.value).partition(": ")[2] == reason.partition(": ")[2]
    assert [str(each.amount) for each in bookings_of(statement(booking(amount="1,250"), booking(amount="3,50")))] == [
        "1.250",
        "3.50",
    ]
    yen = statement(booking(amount="-1,250"), booking(amount="-1.250"), balance="12,345").replace(b"USD", b"JPY")
    assert {each.amount for each in bookings_of(yen)} == {Decimal(-1250)}
    dinars = statement(booking(amount="-1.250"), balance="12.345").replace(b"USD", b"KWD")
    assert bookings_of(dinars)[0].amount == Decimal("-1.250")


@pytest.mark.requirement("readers.ofx.amounts")
def test_the_digits_that_a_binary_number_adds_are_no_money() -> None:
    rows = bookings_of(statement(booking(amount="-19.989999999999998"), booking(amount="100.30000000000001")))
    assert [str(each.amount) for each in rows] == ["-19.99", "100.30"]
    with pytest.raises(MalformedFile, match="cannot be read"):
        records(statement(booking(amount="-19.98765432109876")))


@pytest.mark.requirement("readers.ofx.currency")
def test_an_amount_in_another_currency_is_converted_by_its_rate() -> None:
    """OFX 5.2: CURRENCY is not converted yet, ORIGCURRENCY is."""
    foreign = booking(amount="-100.00").replace("</STMTTRN>", "<{0}><CURRATE>1.10<CURSYM>EUR</{0}></STMTTRN>")
    (row,) = bookings_of(statement(foreign.format("CURRENCY")))
    assert (row.amount, row.currency) == (Decimal("-110.00"), "USD")
    assert (row.original_amount, row.original_currency) == (Decimal("-100.00"), "EUR")
    (row,) = bookings_of(statement(foreign.format("ORIGCURRENCY")))
    assert (row.amount, row.currency, row.original_amount) == (Decimal("-100.00"), "USD", None)
    for rate in ("", "0", "x", "1"):
        with pytest.raises(MalformedFile, match="a transaction in another currency has no rate"):
            records(statement(foreign.format("CURRENCY").replace("1.10", rate)))


@pytest.mark.requirement("readers.ofx.currency")
def test_a_former_code_is_that_of_its_successor_and_what_is_no_currency_is_refused() -> None:
    assert bookings_of(statement(booking()).replace(b"USD", b"BRC"))[0].currency == "BRL"
    assert bookings_of(statement(booking()).replace(b"USD", b"RUR"))[0].currency == "RUB"
    with pytest.raises(MalformedFile, match="a currency code cannot be read"):
        records(statement(booking()).replace(b"USD", b"HUN"))


@pytest.mark.requirement("readers.ofx.account")
def test_an_account_without_number_is_unnamed() -> None:
    account = records(statement(booking()).replace(b"<ACCTID>556677", b"<ACCTID>"))[0]
    assert isinstance(account, AccountRecord)
    assert (account.is_anonymous, account.kind) == (True, "savings")
