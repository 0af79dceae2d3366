"""Layouts beyond Germany: wallets of several currencies, fees, indicators, cards, other alphabets. Invented data."""

# ruff: noqa: E501 - a bank's row is one line

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.connector import MalformedFile

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]


@pytest.mark.requirement("readers.csv.n26")
@pytest.mark.parametrize(
    "header",
    [
        '"Date","Payee","Account number","Transaction type","Payment reference","Category","Amount (EUR)"',
        '"Datum","Empfänger","Kontonummer","Transaktionstyp","Verwendungszweck","Kategorie","Betrag (EUR)"',
        '"Date","Bénéficiaire","Numéro de compte","Type de transaction","Référence de paiement","Catégorie","Montant (EUR)"',
    ],
)
def test_n26_speaks_several_languages(read_csv: Read, header: str) -> None:
    row = '"2026-03-02","Shop","DE02100500000054540402","MasterCard Payment","","Food","-1012.34"'
    booking = read_csv(f"{header}\n{row}\n")[1][0]
    assert (booking.amount, booking.currency, booking.counterpart_name) == (Decimal("-1012.34"), "EUR", "Shop")


@pytest.mark.requirement("readers.csv.n26")
def test_a_row_with_one_cell_too_few_is_read_from_its_end(read_csv: Read) -> None:
    text = """"Date","Payee","Account number","Transaction type","Payment reference","Category","Amount (EUR)","Amount (Foreign Currency)","Type Foreign Currency","Exchange Rate"
"2026-03-02","Shop","","Outgoing Transfer","Rent","-12.34","","",""
"""
    assert read_csv(text)[1][0].amount == Decimal("-12.34")


@pytest.mark.requirement("readers.csv.n26")
def test_the_newer_n26_layout_is_read(read_csv: Read) -> None:
    text = """"Booking Date","Value Date","Partner Name","Partner Iban",Type,"Payment Reference","Account Name","Amount (EUR)","Original Amount","Original Currency","Exchange Rate"
2026-03-02,2026-03-03,Shop,,Presentment,,"Main Account",-9.10,-10,USD,0.91
"""
    row = read_csv(text)[1][0]
    assert (row.amount, row.value_date, row.original_amount, row.original_currency) == (
        Decimal("-9.10"), date(2026, 3, 3), Decimal("-10"), "USD",
    )  # fmt: skip


@pytest.mark.requirement("readers.csv.revolut")
def test_a_revolut_fee_moves_the_balance_and_every_currency_is_an_account(read_csv: Read) -> None:
    text = """Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance
TOPUP,Current,2026-03-01 10:00:00,2026-03-01 10:00:01,Top-Up,100.00,0.00,EUR,COMPLETED,100.00
EXCHANGE,Current,2026-03-02 10:00:00,2026-03-02 10:00:01,Exchanged to USD,-50.00,0.50,EUR,COMPLETED,49.50
EXCHANGE,Current,2026-03-02 10:00:00,2026-03-02 10:00:01,Exchanged to USD,55.00,0.00,USD,COMPLETED,55.00
CARD_PAYMENT,Current,2026-03-03 10:00:00,,Kiosk,-4.00,0.00,EUR,PENDING,
CARD_PAYMENT,Current,2026-03-03 11:00:00,,Kiosk,-6.00,0.00,EUR,REVERTED,
"""
    accounts, rows, statements = read_csv(text)
    assert [account.stable_key for account in accounts] == [
        "Revolut/Current/EUR", "Revolut/Current/USD",
    ]  # fmt: skip
    assert [(row.amount, row.status) for row in rows] == [
        (Decimal("100.00"), "booked"),
        (Decimal("-50.50"), "booked"),
        (Decimal("-4.00"), "pending"),
        (Decimal("55.00"), "booked"),
    ]
    assert [(s.opening, s.closing) for s in statements] == [
        (Decimal("0.00"), Decimal("49.50")),
        (Decimal("0.00"), Decimal("55.00")),
    ]


@pytest.mark.requirement("readers.csv.wise")
def test_a_wise_transfer_and_its_fee_share_an_id_and_keep_apart(read_csv: Read) -> None:
    text = """"TransferWise ID","Date","Amount","Currency","Description","Payment Reference","Running Balance","Exchange From","Exchange To","Exchange Rate","Payer Name","Payee Name","Payee Account Number","Merchant"
TRANSFER-1,02-03-2026,-0.50,EUR,"Wise Charges for: TRANSFER-1",,99.50,,,,,,,
TRANSFER-1,02-03-2026,-100.00,EUR,"Sent money to Ada Muster",Rent,100.00,,,,,"Ada Muster",DE02100500000054540402,
"""
    fee, transfer = read_csv(text)[1]
    assert fee.provider_id != transfer.provider_id
    assert transfer.provider_id == "TRANSFER-1|Sent money to Ada Muster"
    assert (transfer.counterpart_name, transfer.counterpart_iban) == ("Ada Muster", "DE02100500000054540402")


@pytest.mark.requirement("readers.csv.paypal")
def test_paypal_conversions_stay_in_their_currencies_and_refused_payments_out(read_csv: Read) -> None:
    text = """"Datum","Uhrzeit","Zeitzone","Name","Typ","Status","Währung","Brutto","Gebühr","Netto","Transaktionscode","Guthaben","Auswirkung auf Guthaben"
"02.03.2026","10:00:00","CET","Shop US","Express-Zahlung","Abgeschlossen","USD","-11,00","0,00","-11,00","T1","-11,00","Soll"
"02.03.2026","10:00:00","CET","","Allgemeine Währungsumrechnung","Abgeschlossen","EUR","-10,00","0,00","-10,00","T2","-10,00","Soll"
"02.03.2026","10:00:00","CET","","Allgemeine Währungsumrechnung","Abgeschlossen","USD","11,00","0,00","11,00","T3","0,00","Haben"
"03.03.2026","10:00:00","CET","Shop","Zahlung","Abgelehnt","EUR","-5,00","0,00","-5,00","T4","-10,00","Soll"
"04.03.2026","10:00:00","CET","Kunde","Zahlung","Ausstehend","EUR","20,00","-0,50","19,50","T5","-10,00","Haben"
"""
    accounts, rows, _ = read_csv(text)
    assert [account.stable_key for account in accounts] == ["PayPal/USD", "PayPal/EUR"]
    booked = [row for row in rows if row.status == "booked"]
    totals = {code: sum(row.amount for row in booked if row.currency == code) for code in ("USD", "EUR")}
    assert totals == {"USD": Decimal("0.00"), "EUR": Decimal("-10.00")}
    pending = [row for row in rows if row.status == "pending"]
    assert [(row.amount, row.provider_id) for row in pending] == [(Decimal("19.50"), "T5")]


@pytest.mark.requirement("readers.csv.paypal")
@pytest.mark.parametrize(("day", "expected"), [("25/03/2026", date(2026, 3, 25)), ("03/25/2026", date(2026, 3, 25))])
def test_english_paypal_dates_follow_the_file(read_csv: Read, day: str, expected: date) -> None:
    text = f'"Date","Time","TimeZone","Name","Type","Status","Currency","Gross","Fee","Net","Transaction ID","Balance"\n"{day}","1","CET","N","T","Completed","GBP","-1.00","0.00","-1.00","X","9.00"\n'
    assert read_csv(text)[1][0].booking_date == expected


@pytest.mark.requirement("readers.csv.profiles")
def test_rabobank_rows_of_two_accounts_are_two_statements(read_csv: Read) -> None:
    text = """"IBAN/BBAN","Munt","BIC","Volgnr","Datum","Rentedatum","Bedrag","Saldo na trn","Tegenrekening IBAN/BBAN","Naam tegenpartij","Omschrijving-1","Omschrijving-2"
"NL44RABO0123456789","EUR","RABONL2U","001","2026-03-02","2026-03-02","-10,00","+90,00","","Winkel","Een ","twee"
"NL44RABO0123456789","EUR","RABONL2U","002","2026-03-03","2026-03-03","+5,50","+95,50","","Ada",""," "
"NL17RABO0987654321","EUR","RABONL2U","001","2026-03-02","2026-03-02","+10,00","+10,00","","Ada","",""
"""
    accounts, rows, statements = read_csv(text)
    assert [account.iban for account in accounts] == [
        "NL44RABO0123456789", "NL17RABO0987654321",
    ]  # fmt: skip
    assert [(s.opening, s.closing) for s in statements] == [
        (Decimal("100.00"), Decimal("95.50")), (Decimal("0.00"), Decimal("10.00")),
    ]  # fmt: skip
    assert rows[0].purpose == "Een twee"


@pytest.mark.requirement("readers.csv.profiles")
def test_dutch_ing_signs_by_af_and_bij(read_csv: Read) -> None:
    text = """"Datum","Naam / Omschrijving","Rekening","Tegenrekening","Code","Af Bij","Bedrag (EUR)","MutatieSoort","Mededelingen"
"20260302","Winkel","NL20INGB0001234567","","BA","Af","12,50","Betaalautomaat","x"
"20260303","Ada","NL20INGB0001234567","","OV","Bij","1.000,00","Overschrijving","y"
"""
    assert [row.amount for row in read_csv(text)[1]] == [Decimal("-12.50"), Decimal("1000.00")]


@pytest.mark.requirement("readers.csv.profiles")
def test_polish_text_is_cp1250_and_its_amounts_carry_spaces_and_a_currency(read_csv: Read) -> None:
    text = """mBank S.A. Bankowość Detaliczna;

#Data operacji;#Opis operacji;#Rachunek;#Kategoria;#Kwota;#Saldo po operacji;
2026-03-02;ŻÓŁW SKLEP;eKonto 1111 ... 2222;Zakupy;-1 030,50 PLN;2 960,15 PLN;
"""
    [account], [row], [statement] = read_csv(text, "cp1250")
    assert (account.currency, row.purpose, row.amount) == ("PLN", "ŻÓŁW SKLEP", Decimal("-1030.50"))
    assert statement.closing == Decimal("2960.15")


@pytest.mark.requirement("readers.csv.profiles")
def test_a_pending_row_without_a_date_gets_the_newest_booked_day(read_csv: Read) -> None:
    text = "Date,Description,Amount(GBP)\nPending,Cafe,3.00\n14/03/2026,Books,12.00\n13/03/2026,Refund,-5.00\n"
    assert [(row.amount, row.status, row.booking_date.day) for row in read_csv(text)[1]] == [
        (Decimal("-3.00"), "pending", 14), (Decimal("-12.00"), "booked", 14), (Decimal("5.00"), "booked", 13),
    ]  # fmt: skip


@pytest.mark.requirement("readers.csv.profiles")
def test_pending_rows_below_the_booked_ones_get_their_newest_day_too(read_csv: Read) -> None:
    text = "Date,Description,Amount(GBP)\n14/03/2026,Books,12.00\n13/03/2026,Refund,-5.00\nPending,Cafe,3.00\n"
    assert [row.booking_date.day for row in read_csv(text)[1]] == [14, 13, 14]
    with pytest.raises(MalformedFile, match="No transaction of the file has a date"):
        read_csv("Date,Description,Amount(GBP)\nPending,Cafe,3.00\n")


@pytest.mark.requirement("readers.csv.profiles")
def test_a_line_of_totals_is_no_booking(read_csv: Read) -> None:
    text = "Date,Narrative,Amount,Currency\n2026-03-02,Cafe,-3.00,GBP\nTotal,,-3.00,GBP\n"
    assert [row.amount for row in read_csv(text)[1]] == [Decimal("-3.00")]


@pytest.mark.requirement("readers.csv.profiles")
def test_a_tab_separated_file_in_utf16_is_read(read_csv: Read) -> None:
    text = "Card number: 4000\n\nDATE\tDESCRIPTION\tOUTFLOW\tINFLOW\tBALANCE\n02/03/2026\tTienda\t1,012.50\t\t100.00\n01/03/2026\tNómina\t\t2,000.00\t1,112.50\n"
    for encoding in ("utf-16", "utf-16-le"):
        assert [row.amount for row in read_csv(text, encoding)[1]] == [Decimal("-1012.50"), Decimal("2000.00")]


@pytest.mark.requirement("readers.csv.profiles")
def test_american_amounts_and_dates_are_read(read_csv: Read) -> None:
    text = """"Date","Status","Type","CheckNumber","Description","Withdrawal","Deposit","RunningBalance"
"03/04/2026","Posted","ATM","","Cash","$1,103.00","","$858.47"
"03/03/2026","Posted","DEPOSIT","","Payroll","","$20.00","$1,961.47"
"""
    [account], [cash, pay], [statement] = read_csv(text)
    assert (account.currency, cash.amount, pay.amount) == ("USD", Decimal("-1103.00"), Decimal("20.00"))
    assert cash.booking_date == date(2026, 3, 4)
    assert (statement.opening, statement.closing) == (Decimal("1941.47"), Decimal("858.47"))


@pytest.mark.requirement("readers.csv.profiles")
def test_monzo_and_bunq_keep_ids_and_counterparts(read_csv: Read) -> None:
    monzo = "Transaction ID,Date,Time,Type,Name,Emoji,Category,Amount,Currency,Local amount,Local currency,Notes and #tags\ntx_1,02/03/2026,10:00:00,Card payment,Cafe,,Eating out,-3.20,GBP,-4.00,EUR,\n"
    row = read_csv(monzo)[1][0]
    assert (row.provider_id, row.amount, row.original_currency) == ("tx_1", Decimal("-3.20"), "EUR")
    bunq = '"Date";"Interest Date";"Amount";"Account";"Counterparty";"Name";"Description"\n"2026-03-02";"2026-03-02";"-1.234,56";"NL44BUNQ0123456789";"NL44RABO0123456789";"Winkel";"x"\n'
    assert read_csv(bunq)[1][0].amount == Decimal("-1234.56")


@pytest.mark.requirement("readers.csv.profiles")
def test_a_card_that_marks_only_payments_spends_in_all_other_rows(read_csv: Read) -> None:
    text = """Date Processed,Description,Amount,
Pending,KIOSK,£7.40,
12-Jan-2026,SHOP,"£1,183.23",
02-Jan-2026,PAYMENT RECEIVED,"+ £1,100.00",CR
"""
    rows = read_csv(text)[1]
    assert [(row.amount, row.status, row.currency) for row in rows] == [
        (Decimal("-7.40"), "pending", "GBP"), (Decimal("-1183.23"), "booked", "GBP"), (Decimal("1100.00"), "booked", "GBP"),
    ]  # fmt: skip


@pytest.mark.requirement("readers.csv.profiles")
def test_half_of_the_first_rows_may_be_pending_ones_of_another_shape(read_csv: Read) -> None:
    text = "RESERVED;2026-03-03;-;-196,00;-\nSHOP;2026-03-02;2026-03-02;-10,00;22 103,16\n"
    rows = read_csv(text)[1]
    assert [(row.amount, row.status, row.currency) for row in rows] == [
        (Decimal("-196.00"), "pending", "SEK"), (Decimal("-10.00"), "booked", "SEK"),
    ]  # fmt: skip


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize("column", ["Megnevezés", "Leírás", "Közlemény", "Szöveg"])
def test_words_stay_where_a_bank_has_given_their_column_another_name(read_csv: Read, column: str) -> None:
    text = f"Könyvelés dátuma;{column};Összeg;Devizanem;Sorszám\n2026. 03. 02.;Pékség;-1 250;HUF;4711\n"
    (row,) = read_csv(text)[1]
    assert (row.purpose, row.amount, row.currency) == ("Pékség", Decimal("-1250"), "HUF")
