"""What had to be guessed of a CSV file is said: its columns, what its signs rest on, where its currency comes from."""

import io
import re
from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from analytics.records import AccountRecord, TransactionRecord
from connectors.bank_csv.layouts import UNSIGNED, CsvLayout, check_layouts, guess_in_words
from connectors.bank_csv.profile import chosen_profile
from connectors.bank_csv.reader import read
from connectors.bank_csv.recognition import recognise
from connectors.connector import MalformedFile, UnsupportedFile


def layout_of(text: str) -> CsvLayout:
    """The one layout that is told while a file is read."""
    told: list[CsvLayout] = []
    try:
        list(read(io.BytesIO(text.encode()), on_layout=told.append))
    except UnsupportedFile:
        assert told, "a table that is seen is told, also where it is refused"
    (layout,) = told
    return layout


@pytest.mark.requirement("readers.csv.guesses")
def test_what_was_guessed_is_said_column_by_column() -> None:
    layout = layout_of("Date,Payee,Text,Amount\n2026-03-02,Netflix,Film,-12.99\n2026-03-03,Rewe,Milk,-1.00\n")
    assert [(each.name, each.field, each.example) for each in layout.columns] == [
        ("Date", "date", "2026-03-02"),
        ("Payee", "name", "Netflix"),
        ("Text", "purpose", "Film"),
        ("Amount", "amount", "-12.99"),
    ]
    assert (layout.is_guessed, layout.has_header, layout.decimal, layout.dates) == (True, True, ".", ("YYYY-MM-DD",))
    assert guess_in_words(layout) == (
        'Guessed: booking date from "Date", amount from "Amount", payee or payer from "Payee", purpose from "Text"; '
        "signs as written; currency EUR assumed, as the file names none."
    )


@pytest.mark.requirement("readers.csv.guesses")
def test_a_column_without_a_name_at_the_end_is_that_of_no_field() -> None:
    layout = layout_of("Fecha,Concepto,Importe,Saldos,\n02/03/2026,Pan,-1.50,8.50,\n13/03/2026,Sol,2.00,10.50,\n")
    assert [each.field for each in layout.columns] == ["date", "name", "amount", "balance", None]


@pytest.mark.requirement("readers.csv.guesses")
def test_a_known_layout_is_no_guess() -> None:
    told: list[CsvLayout] = []
    table = "Date,Description,Amount,Running Bal.\n03/02/2026,Rewe,-3.50,6.50\n03/15/2026,Eva,1.00,7.50\n"
    list(read(io.BytesIO(table.encode()), on_layout=told.append))
    assert told == []


@pytest.mark.requirement("readers.csv.guesses")
@pytest.mark.parametrize(
    ("table", "sign"),
    [
        ("Date,Payee,Amount\n2026-03-02,Rewe,-3.50\n2026-03-03,Eva,5.00\n", "written"),
        ("Date,Payee,Amount\n2026-03-02,Eva,+3.50\n", "written"),
        ("Date,Payee,Amount,Type\n2026-03-02,Rewe,3.50,Debit\n2026-03-03,Eva,5.00,Credit\n", "words"),
        ("Date,Payee,Amount,What\n2026-03-02,Rewe,3.50,spent\n2026-03-03,Eva,5.00,received\n", "words"),
        ("Date,Payee,Debit,Credit\n2026-03-02,Rewe,3.50,\n2026-03-03,Eva,,5.00\n", "columns"),
        ("Date,Payee,Amount,Balance\n2026-03-02,a,3.50,3.50\n2026-03-03,b,1.00,4.50\n2026-03-04,c,2,6.50\n", "balance"),
        ("Date,Payee,Amount,Balance\n2026-03-02,a,3.50,9.50\n2026-03-03,b,1.00,8.50\n2026-03-04,c,2,6.50\n", "unknown"),
        ("Date,Payee,Amount\n2026-03-02,Rewe,3.50\n2026-03-03,Eva,5.00\n", "unknown"),
    ],
)
def test_what_the_signs_rest_on(table: str, sign: str) -> None:
    assert layout_of(table).sign == sign


@pytest.mark.requirement("readers.csv.guesses")
@pytest.mark.parametrize(
    ("table", "currency", "source"),
    [
        ("Date,Payee,Amount\n2026-03-02,Rewe,-3.50\n", "EUR", "assumed"),
        ("Date,Payee,Amount,Currency\n2026-03-02,Rewe,-3.50,CHF\n", "CHF", "column"),
        ("Date,Payee,Amount (CHF)\n2026-03-02,Rewe,-3.50\n", "CHF", "header"),
        ("Currency,CHF,\nDate,Payee,Amount\n2026-03-02,Rewe,-3.50\n", "CHF", "file"),
        ("Date,Payee,Amount\n2026-03-02,Rewe,-3.50 CHF\n", "CHF", "amounts"),
        ("IBAN,CH9300762011623852957,\nDate,Payee,Amount\n2026-03-02,Rewe,-3.50\n", "CHF", "account"),
    ],
)
def test_where_the_currency_comes_from(table: str, currency: str, source: str) -> None:
    layout = layout_of(table)
    assert (layout.currency, layout.currency_source) == (currency, source)


@pytest.mark.requirement("readers.csv.guesses")
@given(amounts=st.lists(st.tuples(st.integers(1, 99_999), st.sampled_from(["", "-", "+"])), min_size=1, max_size=8))
def test_a_guess_that_leaves_open_what_was_spent_is_refused_and_no_other(amounts: list[tuple[int, str]]) -> None:
    """Hand-written rule: some amount has a sign, or nobody can know."""
    rows = "".join(f"2026-03-02,Rewe,{sign}{cents // 100}.{cents % 100:02}\n" for cents, sign in amounts)
    layout = layout_of(f"Date,Payee,Amount\n{rows}")
    if any(sign for _, sign in amounts):
        check_layouts([layout])
    else:
        with pytest.raises(UnsupportedFile) as refusal:
            check_layouts([layout])
        assert str(refusal.value) == UNSIGNED


@pytest.mark.requirement("readers.csv.guesses")
@pytest.mark.parametrize("row", ["01/02/2026,Rewe,Milk,-3.50", "2026-02-01,Rewe,Milk,-3.500"])
def test_the_columns_of_a_table_whose_days_or_amounts_are_in_doubt_are_told_for_a_person_to_choose(row: str) -> None:
    layout = layout_of(f"Date,Payee,Memo,Amount\n{row}\n")
    assert [each.name for each in layout.columns] == ["Date", "Payee", "Memo", "Amount"]


@pytest.mark.requirement("readers.csv.guesses")
def test_of_a_table_that_nobody_knows_its_columns_are_told_for_a_person_to_choose() -> None:
    layout = layout_of("Tag;Wer;Wer;;\n02.03.2026;Rewe;Eva;3,50;1,00\n03.03.2026;Rewe;Eva;3,50;1,00\n")
    assert [(each.name, each.field, each.example) for each in layout.columns] == [
        ("Tag", None, "02.03.2026"),
        ("Wer", None, "Rewe"),
        ("Wer#2", None, "Eva"),
        ("@4", None, "3,50"),
        ("@5", None, "1,00"),
    ]
    assert (layout.sign, layout.currency) == ("unknown", None)
    check_layouts([layout])  # it is refused for its columns
    headless = layout_of("x;02.03.2026;3,50;4,50\ny;03.03.2026;3,50;4,50\n")
    assert (headless.has_header, [each.name for each in headless.columns]) == (False, ["@1", "@2", "@3", "@4"])


OTHERS = ["DE89370400440532013000", "DE02120300000000202051", "DE02500105170137075030", "DE75512108001245126199"]
OWN = "DE02100500000054540402"


def read_accounts(text: str) -> tuple[list[str], list[str | None], str]:
    """The keys of the accounts, the counterparts' IBANs, and the sentence about the guess."""
    told: list[CsvLayout] = []
    records = list(read(io.BytesIO(text.encode()), on_layout=told.append))
    keys = [each.stable_key for each in records if isinstance(each, AccountRecord)]
    theirs = [each.counterpart_iban for each in records if isinstance(each, TransactionRecord)]
    return keys, theirs, guess_in_words(told[0])


def table(column: str, values: Sequence[str], above: str = "") -> str:
    rows = [f"{day:02}.03.2026;Person {day};{value};-{day},50" for day, value in enumerate(values, start=13)]
    return "\n".join([*filter(None, [above]), f"Datum;Name;{column};Betrag", *rows, ""])


@pytest.mark.requirement("readers.csv.guesses.account")
@pytest.mark.parametrize("column", ["IBAN", "Konto", "Kontonummer", "Account", "Rekening", "Compte"])
def test_accounts_that_change_with_the_names_are_those_of_the_counterparts(column: str) -> None:
    keys, theirs, said = read_accounts(table(column, OTHERS))
    assert (keys, theirs) == (["CSV"], OTHERS)
    assert f'the account of payee or payer from "{column}"' in said
    keys, theirs, _ = read_accounts(table(column, OTHERS, above=f"IBAN;{OWN}"))
    assert (keys, theirs) == ([OWN], OTHERS)


@pytest.mark.requirement("readers.csv.guesses.account")
def test_an_account_that_is_the_same_beside_all_names_is_our_own_and_one_above_the_table_wins() -> None:
    keys, theirs, said = read_accounts(table("IBAN", [OTHERS[0]] * 3))
    assert (keys, theirs) == ([OTHERS[0]], [None] * 3)
    assert 'account from "IBAN"' in said
    assert read_accounts(table("IBAN", [OTHERS[0]] * 3, above=f"IBAN;{OWN}"))[0] == [OWN]
    assert read_accounts(table("IBAN", OTHERS[:1]))[:2] == (["CSV"], OTHERS[:1])
    assert read_accounts(table("IBAN", OTHERS, above=f"Filter Empfänger;{OTHERS[0]}"))[0] == ["CSV"]


@pytest.mark.requirement("readers.csv.guesses.account")
def test_several_accounts_are_our_own_where_the_column_says_so_or_names_them() -> None:
    assert read_accounts(table("Eigenes Konto", OTHERS[:2] * 3))[0] == OTHERS[:2]
    assert read_accounts(table("Konto", ["Giro", "Giro", "Tagesgeld", "Giro"]))[0] == ["CSV/Giro", "CSV/Tagesgeld"]
    with pytest.raises(UnsupportedFile, match='the column "Konto" may name your accounts or those of others'):
        read_accounts(table("Konto", OTHERS[:2] * 3))


@pytest.mark.requirement("readers.csv.guesses.account")
def test_a_bank_s_layout_whose_account_is_the_counterpart_s_is_another_one() -> None:
    """The columns of ING in Australia, but for the payees that it does not have."""
    rows = "".join(f"{day}/03/2026,{iban},Text,,-3.50,Eva {day}\n" for day, iban in enumerate(OTHERS, start=13))
    assert read_accounts(f"Date,Account,Description,Credit,Debit,Payee\n{rows}")[:2] == (["CSV"], OTHERS)


OPEN = "The CSV layout is unknown: the currency of the amounts cannot be told. "


@pytest.mark.requirement("readers.csv.guesses.currency")
@pytest.mark.parametrize(
    ("table", "currency", "source"),
    [
        ("Dato;Tekst;Beløb;Valuta\n2026-03-02;a;-1,50;DKK\n", "DKK", "column"),  # or the value date
        ("Дата;Описание;Сумма;Валюта\n02.03.2026;a;-1,50;RUB\n", "RUB", "column"),
        ("Date;Text;Amount;Irgendwas\n2026-03-02;a;-1,50;SEK\n", "SEK", "column"),
        ("Date;Text;Amount;Currency\n2026-03-02;a;-1,50;US Dollar\n2026-03-02;a;-1,50;$us\n", "USD", "column"),
        ("Date;Text;Amount;Land\n2026-03-02;a;-1,50;HUN\n", "EUR", "assumed"),
        ("Date;Text;Amount;Land\n2026-03-02;a;-1,50;CHE\n", "EUR", "assumed"),
        ("Moneda;USD\nDate;Text;Amount\n2026-03-02;a;-1,50\n", "USD", "file"),
        ("Alle Beträge in CHF\nDate;Text;Amount\n2026-03-02;a;-1,50\n", "CHF", "file"),
        ("Konto;DE02120300000000202051 (USD)\nDate;Text;Amount\n2026-03-02;a;-1,50\n", "USD", "file"),
        ("Date;Text;Amount\n2026-03-02;a;R$ -1,50\n", "BRL", "amounts"),
        ("Date;Text;Amount\n2026-03-02;a;-1,50 TL\n", "TRY", "amounts"),
        ("Date;Text;Amount\n2026-03-02;a;-1,50 Euro\n", "EUR", "amounts"),
        ("Date;Text;Amount;Currency\n2026-03-02;a;$-1,50;CAD\n", "CAD", "column"),
        ("Currency;NOK\nDate;Text;Amount\n2026-03-02;a;-1,50 kr.\n", "NOK", "file"),
    ],
)
def test_a_currency_is_one_of_iso_4217_wherever_the_file_says_it(table: str, currency: str, source: str) -> None:
    layout = layout_of(table)
    assert (layout.currency, layout.currency_source) == (currency, source)


@pytest.mark.requirement("readers.csv.guesses.currency")
@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("Date;Text;Amount\n2026-03-02;a;-$1,50\n", OPEN),
        ("Date;Text;Amount\n2026-03-02;a;-1,50 kr.\n", OPEN),
        ("Date;Text;Amount\n2026-03-02;a;¥-150\n", OPEN),
        ("Date;Text;Amount ($)\n2026-03-02;a;-1,50\n", OPEN),
        ("Currency;EUR\nDate;Text;Amount\n2026-03-02;a;-$1,50\n", OPEN),
        ("Date;Text;Amount;Currency\n2026-03-02;a;-1,50;$\n", OPEN),
        ("Date;Text;Amount;Other\n2026-03-02;a;-1,50;SEK\n2026-03-02;a;-1,50;NOK\n", OPEN),
        ("Date;Text;Amount\n2026-03-02;a;HUN -1,50\n", "what stands beside the amounts is no currency"),
        ("Date;Text;Amount;Currency\n2026-03-02;a;-1,50;HUN\n", "the column of currencies names none that is known"),
    ],
)
def test_a_currency_that_may_be_several_is_asked_for(table: str, reason: str) -> None:
    told: list[CsvLayout] = []
    with pytest.raises(UnsupportedFile, match=re.escape(reason)):
        list(read(io.BytesIO(table.encode()), on_layout=told.append))
    profile = replace(chosen_profile(str(told[0].profile)), currency="SGD")  # all but the currency is there to be kept
    table = table.replace(";HUN", ";SGD").replace("HUN ", "")
    rows = [each for each in read(io.BytesIO(table.encode()), [profile]) if isinstance(each, TransactionRecord)]
    assert rows[0].currency == ("EUR" if "EUR" in table else "SGD")


@pytest.mark.requirement("readers.csv.guesses.currency")
def test_a_row_without_a_currency_is_in_the_only_one_that_the_column_names() -> None:
    table = "Date;Text;Amount;Currency\n2026-03-02;a;-1,50;USD\n2026-03-03;b;-2,50;\n"
    rows = [each for each in read(io.BytesIO(table.encode())) if isinstance(each, TransactionRecord)]
    assert [each.currency for each in rows] == ["USD", "USD"]


@pytest.mark.requirement("readers.csv.guesses.currency")
def test_a_code_far_below_that_is_no_currency_refuses_the_file() -> None:
    rows = "2026-03-02;a;-1,50;SEK\n" * 3_000
    with pytest.raises(MalformedFile) as refusal:
        list(read(io.BytesIO(f"Date;Text;Amount;Currency\n{rows}2026-03-02;a;-1,50;HUN\n".encode())))
    assert str(refusal.value) == "Line 3002: the currency cannot be read."


@pytest.mark.requirement("readers.csv.guesses.values")
@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1,250.00 Dr", "-1250.00"),
        ("1,25,000.00 Cr", "125000.00"),
        ("12.–", "12"),
        ("-1'250.-", "-1250"),
        ("12,--", "12"),
        ("Rs.500.00 dr.", "-500.00"),
        ("\u200e-12.50\u200e", "-12.50"),
        ("-19.989999999999998", "-19.99"),
    ],
)
def test_amounts_are_read_as_people_and_programs_write_them(written: str, amount: str) -> None:
    table = f'Currency,INR\n"Date","Text","Amount"\n2026-03-02,a,"{written}"\n2026-03-03,b,-1.00\n'
    rows = [each for each in read(io.BytesIO(table.encode())) if isinstance(each, TransactionRecord)]
    assert str(rows[0].amount) == amount


@pytest.mark.requirement("readers.csv.guesses.values")
@pytest.mark.parametrize(
    "written",
    ["2026. 03. 02.", "2. 3. 2026", "Mo 02.03.2026", "Monday, March 2, 2026", "2026-03-02 (Mon)", "lundi 02.03.2026"],
)
def test_days_are_read_with_blanks_and_the_day_of_the_week(written: str) -> None:
    table = f"Date;Text;Amount\n{written};a;-1,00\n"
    rows = [each for each in read(io.BytesIO(table.encode())) if isinstance(each, TransactionRecord)]
    assert rows[0].booking_date == date(2026, 3, 2)


@pytest.mark.requirement("readers.csv.guesses.encoding")
@pytest.mark.parametrize(
    ("text", "encodings"),
    [
        ("Bäckerei Müller, Straße", ("cp1252", "cp850", "mac-roman")),
        ("Piekarnia Złoty Kłos, Łódź", ("cp1250", "cp852", "iso8859-2")),
        ("Příkaz k úhradě, Žďár", ("cp1250", "cp852", "iso8859-2")),
        ("Fizető, Győr, Költség", ("cp1250", "cp852")),
        ("Prélèvement, Noël", ("cp1252", "cp850")),
        ("Løn Mølle, Strøm", ("cp1252", "cp850")),
        ("Πληρωμή λογαριασμού", ("cp1253",)),
        ("Пекарня Колос", ("cp1251",)),
        ("Atlyginimas už gruodžio mėnesį", ("cp1257",)),
        ("Miete – März, 5 €", ("cp1252",)),
    ],
)
def test_a_code_page_under_an_ascii_header_is_told_by_the_words_it_makes(text: str, encodings: tuple[str, ...]) -> None:
    for encoding in encodings:
        file = f"Date;Text;Amount\n2026-03-02;{text};-1,00\n".encode(encoding)
        (row,) = (each for each in read(io.BytesIO(file)) if isinstance(each, TransactionRecord))
        assert row.purpose == text, encoding


@pytest.mark.requirement("readers.csv.guesses.encoding")
@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("Osszeg", "Győr", "cp1250"),
        ("Amount", "Győr HU42 1177 3016 1111 1018 0000 0000", "cp1250"),
        ("Amount", "Győr HUF", "cp1250"),
        ("Summa", "Põld", "cp1252"),
        ("Valor", "Simões", "cp1252"),
    ],
)
def test_letters_of_two_languages_are_told_by_what_else_the_file_says(name: str, text: str, encoding: str) -> None:
    file = f"Datum;Text;{name}\n2026-03-02;{text};-1,00\n".encode(encoding)
    assert text in file.decode(recognise(file, [], lambda _: True).encoding)


@pytest.mark.requirement("readers.csv.guesses.encoding")
@pytest.mark.parametrize(
    ("text", "encoding", "read_as"),
    [("Fizetés Győr", "cp1250", ("Gyõr", "Győr")), ("Põld ja Tamm", "cp1252", ("Põld", "Pőld"))],
)
def test_a_word_that_two_code_pages_read_alike_well_is_said_in_both(
    text: str, encoding: str, read_as: tuple[str, str]
) -> None:
    told: list[CsvLayout] = []
    file = f"Datum;Text;Amount\n2026-03-02;{text};-1,00\n".encode(encoding)
    list(read(io.BytesIO(file), on_layout=told.append))
    assert told[0].other_reading == read_as
    assert guess_in_words(told[0]).endswith('assumed, as the file names none; "{}" may also be "{}".'.format(*read_as))


@pytest.mark.requirement("readers.csv.guesses.encoding")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((each, "cp1252") for each in ("Bäckerei Müller, Straße", "Prélèvement, Noël", "Miete – März, 5 €")),
        *((each, "cp1252") for each in ("Põld EEK", "Bar")),
        *(("Fizetés Győr", each) for each in ("utf-16", "utf-16-le", "utf-8-sig")),
    ],
)
def test_words_of_one_language_leave_no_doubt(text: str, encoding: str) -> None:
    told: list[CsvLayout] = []
    file = f"Datum;Text;Amount\n2026-03-02;{text};-1,00\n".encode(encoding)
    list(read(io.BytesIO(file), on_layout=told.append))
    assert told[0].other_reading is None
