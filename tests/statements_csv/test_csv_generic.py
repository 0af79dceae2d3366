"""An unknown layout is read where its words or its content leave no doubt, and refused with what is missing."""

import io
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.amounts_and_dates import date_formats, date_reader, decimal_mark, fitting_formats, read_amount
from connectors.bank_csv.guessing import generic_shape
from connectors.connector import MalformedFile, UnsupportedFile

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    ("text", "amounts", "currency"),
    [
        ("Datum;Empfänger;Zweck;Betrag (CHF)\n31.01.2026;Laden;x;-1'012,50\n", ["-1012.50"], "CHF"),
        ("Fecha,Concepto,Importe,Saldo,Divisa\n31/01/2026,Tienda,-12.50,87.50,EUR\n", ["-12.50"], "EUR"),
        ("Dato;Tekst;Ut;Inn\n31.01.2026;Butikk;12,50;\n30.01.2026;Lønn;;1 000,00\n", ["-12.50", "1000.00"], "EUR"),
        ("Date|Libellé|Débit|Crédit\n31/01/2026|Magasin|-12,50|\n", ["-12.50"], "EUR"),
        ("Data;Opis;Kwota;Waluta\n2026-01-31;Sklep;-12,50;PLN\n", ["-12.50"], "PLN"),
        (
            "Buchungstag;Text;Betrag;Soll/Haben\n31.01.2026;Laden;12,50;S\n30.01.2026;Lohn;5,00;H\n",
            ["-12.50", "5.00"],
            "EUR",
        ),
        ("Posted Date,Payee,Amount,Type\n01/31/2026,Shop,(12.50),POS\n", ["-12.50"], "EUR"),
        ("booking_date,value_date,amount,currency\n2026-01-31,2026-01-31,-12.500000,CHF\n", ["-12.50"], "CHF"),
        ("Date;Libellé;Débit euros;Crédit euros\n31/01/2026;Magasin;12,50;\n", ["-12.50"], "EUR"),
        ("Data;Histórico;Crédito (R$);Débito (R$)\n31/01/2026;Loja;;12,50\n", ["-12.50"], "BRL"),
        ("Datum;Opis;Isplate;Uplate\n31.01.2026;x;12,50;\n30.01.2026;y;;1.000,00\n", ["-12.50", "1000.00"], "EUR"),
        ("Datum;Tekst;Bedrag;Debit / Credit\n31-01-2026;x;12,50;D\n", ["-12.50"], "EUR"),
        ("Date;Text;Debit;Credit\n31.01.2026;a;12,50;\n30.01.2026;b;;-5,00\n", ["-12.50", "5.00"], "EUR"),
        (
            "Date;Text;Debit;Credit\n31.01.2026;a;12,50;\n30.01.2026;b;;-5,00\n30.01.2026;b;;7,00\n",
            ["-12.50", "-5.00", "7.00"],
            "EUR",
        ),
        ("Kirjauspäivä;Summa;Nimi;Valuutta\n31.01.2026;-12,50;Kauppa;EUR\n", ["-12.50"], "EUR"),
    ],
)
def test_header_words_of_many_languages_are_known(read_csv: Read, text: str, amounts: list[str], currency: str) -> None:
    rows = read_csv(text)[1]
    assert [row.amount for row in rows] == [Decimal(amount) for amount in amounts]
    assert {row.currency for row in rows} == {currency}


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Datum;Text;Betrag\n31.01.2026;a;-1.234\n", "-1234"),
        ('Date,Text,Total\n2026-01-31,a,"-1,234"\n', "-1234"),
        ("Datum;Text;Betrag;Währung\n31.01.2026;a;-1,234;KWD\n", "-1.234"),
        ("Datum;Text;Betrag;Währung\n31.01.2026;a;-1.234;KWD\n", "-1.234"),
        ("Datum;Text;Betrag;Währung\n31.01.2026;Uhr TND Import;-1.234;EUR\n", "-1234"),
        ("Date,Text,Total (TND)\n2026-01-31,a,-1.234\n", "-1.234"),
    ],
)
def test_three_digits_are_thousands_but_for_currencies_of_three_decimals(
    read_csv: Read, text: str, amount: str
) -> None:
    (row,) = read_csv(text)[1]
    assert row.amount == Decimal(amount)


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize("columns", ["Available balance,Balance", "Saldo disponible,Saldo", "Balance,Balance"])
def test_an_available_balance_counts_only_where_there_is_no_other(read_csv: Read, columns: str) -> None:
    rows = "2026-01-30,-10,5990,990\n2026-01-31,-20,5970,970\n"
    is_available = not columns.startswith("Balance")
    assert read_csv(f"Date,Amount,{columns}\n{rows}")[2][0].closing == (970 if is_available else 5970)
    assert read_csv(f"Date,Amount,{columns.split(',')[0]},Text\n{rows}")[2][0].closing == 5970


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Farbe;Größe;Betrag\nrot;3;4,00\n", "no column is recognised as the booking date"),
        ("Datum;Farbe;Größe\n31.01.2026;rot;3\n", "no column is recognised as the amount"),
        (
            "Date,Text,Total\n01/02/2026,a,1.50\n02/01/2026,b,2.50\n01/02/2026,c,1.50\n",
            "day and month of the dates cannot be told apart",
        ),
        ("Datum;Text;Betrag\n31.01.2026;a;1,50\n30.01.2026;b;2.5\n", "amounts use two decimal marks"),
        (
            "Datum;Text;Betrag\n31.01.2026;a;1,234\n30.01.2026;b;-2\n",
            "decimals and thousands of the amounts cannot be told",
        ),
        ("Date,Text,Total\n2026-01-31,a,1.234\n2026-01-30,b,-25.000\n", "decimals and thousands of the amounts"),
        ("2026-01-31;a;-1.234\n2026-01-30;b;-25.000\n", "decimals and thousands of the amounts"),
        ("Datum;Text;Betrag\nheute;a;1,50\n", "the dates have no known format|cannot be read"),
        ("Datum;Text;Betrag\n", "holds no transactions"),
        ("just a line of prose without any columns\n", "no line has two columns"),
    ],
)
def test_a_file_in_doubt_is_refused_with_what_is_missing(text: str, reason: str) -> None:
    with pytest.raises((UnsupportedFile, MalformedFile), match=reason):
        list(csv_statements.read(io.BytesIO(text.encode())))


@pytest.mark.requirement("readers.csv.generic")
def test_the_order_of_the_rows_tells_day_from_month() -> None:
    assert fitting_formats(["DD/MM/YYYY", "MM/DD/YYYY"], ["02/01/2026", "03/01/2026", "01/02/2026"]) == ["DD/MM/YYYY"]
    assert fitting_formats(["DD/MM/YYYY", "MM/DD/YYYY"], ["05/05/2026"]) == ["DD/MM/YYYY"]
    with pytest.raises(ValueError, match="told apart"):
        fitting_formats(["DD/MM/YYYY", "MM/DD/YYYY"], ["02/01/2026", "02/01/2026"])


@pytest.mark.requirement("readers.csv.generic")
def test_a_file_without_header_is_read_when_its_columns_can_only_mean_one_thing(read_csv: Read) -> None:
    text = "x;Laden;2026/01/31;-12,50;87,50\nx;Lohn;2026/01/30;50,00;100,00\nx;Bahn;2026/01/29;-5,25;50,00\n"
    _, _, [statement] = read_csv(text)
    assert statement == StatementRecord(
        opening=Decimal("55.25"),
        opening_date=date(2026, 1, 29),
        closing=Decimal("87.50"),
        closing_date=date(2026, 1, 31),
        is_authoritative=True,
    )
    broken = [tuple(line.split(";")) for line in text.replace("100,00", "100,01").splitlines()]
    assert generic_shape(broken) is None  # two columns of amounts, neither the balance of the other


@pytest.mark.requirement("readers.csv.generic")
def test_a_column_of_signed_integers_may_be_the_amount_as_well() -> None:
    rows = [("2026-01-31", "Laden", "-350", "2345,56"), ("2026-01-30", "Lohn", "1290", "2695,56")]
    assert generic_shape(rows) is None  # and not: the balance is the amount
    found = generic_shape([row[:3] for row in rows])
    assert found is not None
    assert found[0].columns["amount"] == ("@3",)


@pytest.mark.requirement("readers.csv.generic")
def test_an_amount_that_is_not_in_every_row_leaves_doubt() -> None:
    rows = [("2026-01-31", "a", "-5,00", "95,00"), ("2026-01-30", "b", "", "100,00"), ("2026-01-29", "c", "", "100,00")]
    assert generic_shape(rows) is None  # the last column may be the balance
    assert generic_shape([(*row[:2], row[3]) for row in rows]) is not None


@pytest.mark.requirement("readers.csv.generic")
def test_words_of_debit_and_credit_give_the_sign_without_a_header_as_well(read_csv: Read) -> None:
    rows = read_csv("31.01.2026;Laden;12,50;debit;a\n30.01.2026;Lohn;5,00;credit;b\n")[1]
    assert [row.amount for row in rows] == [Decimal("-12.50"), Decimal("5.00")]


@pytest.mark.requirement("readers.csv.values")
@pytest.mark.parametrize(
    ("text", "mark", "amount", "currency"),
    [
        ("-1.450", ",", "-1450", None),
        ("5000.01", ",", "5000.01", None),
        ("5000,001", ",", "5000.001", None),
        ("5000.001", ",", "5000.001", None),
        ("-1,450", ".", "-1450", None),
        ("1.234,56-", ",", "-1234.56", None),
        ("12,00 S", ",", "-12.00", None),
        ("12,00 H", ",", "12.00", None),
        ("€ 12,00", ",", "12.00", "EUR"),
        ("-30,00 PLN", ",", "-30.00", "PLN"),
        ("($1,012.50)", ".", "-1012.50", None),
        ("1 234.50 CR", ".", "1234.50", None),
        ("−5", ".", "-5", None),
        ("'1’000.5", ".", "1000.5", None),
    ],
)
def test_amounts_as_banks_write_them(text: str, mark: str, amount: str, currency: str | None) -> None:
    assert read_amount(text.removeprefix("'"), mark) == (Decimal(amount), currency)  # type: ignore[arg-type]  # a mark


@pytest.mark.requirement("readers.csv.values")
@pytest.mark.parametrize(
    "text", ["", "abc", "NaN", "1e5", "12;5", "1,2,3", "--", "--1", "-1-", "12 apples", "1234567890123456"]
)
def test_what_is_no_amount_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        read_amount(text, ".")


@pytest.mark.requirement("readers.csv.values")
@pytest.mark.parametrize(
    ("samples", "mark"),
    [
        (["1,50"], ","),
        (["1.234,5"], ","),
        (["1,234.50", "3"], "."),
        (["1,234"], None),
        (["0,234"], ","),
        (["1234.567"], "."),
        (["1.234.567"], ","),
        (["7"], None),
    ],
)
def test_the_decimal_mark_of_a_column_is_told_by_its_cells(samples: list[str], mark: str | None) -> None:
    assert decimal_mark(samples) == mark


@pytest.mark.requirement("readers.csv.values")
@pytest.mark.parametrize(
    ("format", "text", "day"),
    [
        ("DD.MM.YYYY", "3.2.2026", date(2026, 2, 3)),
        ("DD.MM.YY", "30.02.26", date(2026, 2, 28)),
        ("DD.MM.YY", "01.01.79", date(2079, 1, 1)),
        ("DD.MM.YY", "01.01.80", date(1980, 1, 1)),
        ("YYYY-MM-DD", "2026-01-31T23:59:59Z", date(2026, 1, 31)),
        ("YYYY-MM-DD", "2026-01-31 23:59:59 +0000", date(2026, 1, 31)),
        ("YYYYMMDD", "20260131", date(2026, 1, 31)),
        ("DD MMM YYYY", "31 März 2026", date(2026, 3, 31)),
        ("MMM DD, YYYY", "Jul 4, 2026", date(2026, 7, 4)),
        ("YYYY.MM.DD", "2026.01.31.", date(2026, 1, 31)),
    ],
)
def test_dates_as_banks_write_them(format: str, text: str, day: date) -> None:
    assert date_reader([format])(text) == day
    assert format in date_formats([text]) or format == "DD.MM.YY"


@pytest.mark.requirement("readers.csv.values")
@pytest.mark.parametrize("text", ["31.13.2026", "32.01.2026", "1.1.26x", "2026", "", "31 Foo 2026"])
def test_what_is_no_date_is_not_read(text: str) -> None:
    with pytest.raises(ValueError):
        date_reader(["DD.MM.YYYY", "DD.MM.YY", "DD MMM YYYY"])(text)


@pytest.mark.requirement("readers.csv.generic")
def test_a_file_that_names_only_value_dates_is_dated_by_them(read_csv: Read) -> None:
    [row] = read_csv("Valuta;Betrag;Text\n31.01.2026;1,00;x\n")[1]
    assert (row.booking_date, row.value_date) == (date(2026, 1, 31), None)


@pytest.mark.requirement("readers.csv.generic")
def test_a_signed_amount_counts_before_columns_of_debits_and_credits(read_csv: Read) -> None:
    [row] = read_csv("Datum;Betrag;Soll;Haben\n31.01.2026;-1,00;1,00;\n")[1]
    assert row.amount == Decimal("-1.00")


@pytest.mark.requirement("readers.csv.generic")
def test_of_two_columns_of_dates_the_second_is_the_value_date_and_two_texts_are_joined(read_csv: Read) -> None:
    header = "Datum;Buchungstag;Betrag;Verwendungszweck;Buchungstext"
    [row] = read_csv(f"{header}\n31.01.2026;30.01.2026;1,00;Miete;Januar\n")[1]
    assert (row.booking_date, row.value_date) == (date(2026, 1, 31), date(2026, 1, 30))
    assert row.purpose == "Miete Januar"


@pytest.mark.requirement("readers.csv.generic")
def test_a_hash_in_the_name_of_a_column_is_a_part_of_it(read_csv: Read) -> None:
    [row] = read_csv("Datum;Betrag;Filiale #1;Text\n31.01.2026;1,00;Nord;x\n")[1]
    assert (row.amount, row.purpose) == (Decimal("1.00"), "x")


@pytest.mark.requirement("readers.csv.generic")
def test_the_currency_above_an_unknown_table_is_that_of_its_rows(read_csv: Read) -> None:
    [row] = read_csv("Währung;CHF\nDatum;Betrag;Text\n31.01.2026;1,00;x\n")[1]
    assert row.currency == "CHF"


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    "rows",
    [
        [("2026-01-01", "1,00", "x"), ("2026-01-02", "2,00", "x", "y")],  # of two widths
        [("2026-01-01", "1,00", "2,00", "3,00"), ("2026-01-02", "2,00", "4,00", "5,00")],  # three amounts
        [("2026-01-01", "1,00", "x"), ("02.01.2026", "2,00", "x")],  # dates of two formats
        [("2026-01-01", "1,00", "2,00")] * 2,  # too few rows to prove a running balance
        [("2026-01-01", "1,00", "eur 2,00")] * 3,  # which no bank writes like that
        [("2026-01-01", "1,00", "9,00")] * 3,  # no running balance
    ],
)
def test_columns_that_may_mean_several_things_are_left_alone(rows: list[tuple[str, ...]]) -> None:
    assert generic_shape(rows) is None


@pytest.mark.requirement("readers.csv.generic")
def test_every_column_of_a_file_without_header_is_taken_for_what_it_can_only_be() -> None:
    rows = [
        ("2026-01-01", "2026-01-03", "1,00", "EUR", "11,00", "4711"),
        ("2026-01-02", "2026-01-04", "2,00", "EUR", "13,00", "4712"),
        ("2026-01-03", "2026-01-05", "3,00", "EUR", "16,00", "4713"),
    ]
    found = generic_shape(rows)
    assert found is not None
    profile, start, _ = found
    assert start == 0
    assert profile.columns == {
        "date": ("@1",),
        "value_date": ("@2",),
        "amount": ("@3",),
        "balance": ("@5",),
        "currency": ("@4",),
    }  # numbers alone are no text


@pytest.mark.requirement("readers.csv.generic")
def test_of_two_columns_of_amounts_the_first_counts(read_csv: Read) -> None:
    [row] = read_csv("Datum;Betrag;Amount;Text\n31.01.2026;1,00;2,00;x\n")[1]
    assert row.amount == Decimal("1.00")


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    ("header", "row", "original"),
    [
        ("Betrag;Währung;Betrag in EUR", "-10,00;USD;-9,20", "USD"),
        ("Betrag in EUR;Betrag;Währung", "-9,20;-10,00;USD", "USD"),
        ("Montant;Devise;Montant en EUR", "-10,00;USD;-9,20", "USD"),
        ("Betrag;Währung;Gegenwert in EUR", "-10,00;USD;-9,20", "USD"),
        ("Betrag (EUR);Währung;Originalbetrag", "-9,20;USD;-10,00", "USD"),
        ("Betrag;Originalbetrag;Währung", "-9,20;-10,00;USD", "USD"),
        ("Betrag;Währung;Buchungsbetrag;Buchungswährung", "-10,00;USD;-9,20;EUR", "USD"),
        ("Billing amount;Billing currency;Transaction amount;Transaction currency", "-9,20;EUR;-10,00;USD", "USD"),
        ("Amount;Currency;Exchange rate;Amount in account currency", "-10,00;USD;1,0870;-9,20", "USD"),
        ("Betrag Fremdwährung;Währung;Betrag", "-10,00;USD;-9,20", "USD"),
        ("Soll;Haben;Originalbetrag;Währung", "9,20;;-10,00;USD", "USD"),
        ("Amount;Foreign amount;Foreign currency", "-9,20;-10,00;USD", "USD"),
        ("Währung;Betrag;Originalbetrag", "EUR;-9,20;-10,00", None),
        ("Betrag;Währung;Originalbetrag", "-9,20;EUR;-10,00", None),
        ("Betrag;Währung;Kurs", "-9,20;EUR;1,0870", None),
    ],
)
def test_an_amount_in_foreign_currency_is_not_the_one_that_was_booked(
    read_csv: Read, header: str, row: str, original: str | None
) -> None:
    accounts, rows, _ = read_csv(f"Datum;Text;{header}\n31.01.2026;Shop;{row}\n")
    assert [account.currency for account in accounts] == ["EUR"]
    assert [(row.amount, row.currency) for row in rows] == [(Decimal("-9.20"), "EUR")]
    of_original = [(Decimal(-10), original)] if original else [(None, None)]
    assert [(row.original_amount, row.original_currency) for row in rows] == of_original


@pytest.mark.requirement("readers.csv.generic")
def test_the_currency_of_what_was_not_converted_is_the_accounts(read_csv: Read) -> None:
    text = (
        "Data;Opis;Kwota;Waluta;Kwota w walucie rachunku\n2026-01-31;a;-5,00;PLN;-5,00\n2026-01-30;b;-1,00;EUR;-4,30\n"
    )
    accounts, rows, _ = read_csv(text)
    assert [account.currency for account in accounts] == ["PLN"]
    assert [(row.amount, row.original_amount, row.original_currency) for row in rows] == [
        (Decimal(-5), None, None),
        (Decimal("-4.30"), Decimal(-1), "EUR"),
    ]


@pytest.mark.requirement("readers.csv.generic")
def test_of_several_currencies_that_were_not_converted_each_is_that_of_its_account(read_csv: Read) -> None:
    rows = "2026-01-31,a,-10.00,,EUR\n2026-01-30,b,-20.00,,USD\n2026-01-29,c,-5.00,-5.00,USD\n"
    accounts, booked, _ = read_csv(f"Date,Description,Amount,Original amount,Currency\n{rows}")
    assert sorted(account.currency for account in accounts) == ["EUR", "USD"]
    assert [(row.amount, row.currency) for row in booked] == [
        (Decimal(-10), "EUR"),
        (Decimal(-20), "USD"),
        (Decimal(-5), "USD"),
    ]


@pytest.mark.requirement("readers.csv.generic")
@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("Amount,Original amount,Currency", "-10.00,,EUR|-20.00,-20.00,USD|0.00,0.00,GBP"),
        ("Debit,Credit,Original amount,Currency", "10.00,,-10.00,EUR|,20.00,20.00,USD"),
    ],
)
def test_what_is_no_amount_in_another_currency_is_not_converted(read_csv: Read, header: str, rows: str) -> None:
    lines = "".join(f"2026-01-31,a,{row}\n" for row in rows.split("|"))
    booked = read_csv(f"Date,Description,{header}\n{lines}")[1]
    assert [row.currency for row in booked][:2] == ["EUR", "USD"]
