"""German bank layouts: preambles, pending rows, balances, sections and signs. All names and numbers are invented."""

# ruff: noqa: E501 - a bank's row is one line

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]

SPARKASSE = (
    '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";"Glaeubiger ID";"Mandatsreferenz";'
    '"Kundenreferenz (End-to-End)";"Sammlerreferenz";"Lastschrift Ursprungsbetrag";"Auslagenersatz Ruecklastschrift";'
    '"Beguenstigter/Zahlungspflichtiger";"Kontonummer/IBAN";"BIC (SWIFT-Code)";"Betrag";"Waehrung";"Info"'
)


@pytest.mark.requirement("readers.csv.sparkasse")
def test_a_sparkasse_row_fills_every_field_it_has(read_csv: Read) -> None:
    text = f"""{SPARKASSE}
"DE02120300000000202051";"02.03.26";"30.02.26";"FOLGELASTSCHRIFT";"Strom Februar";"DE98ZZZ09999999999";"M-17";"E2E-4";"";"";"";"Stadtwerke Süd";"DE02100500000054540402";"BELADEBEXXX";"-1.044,50";"EUR";"Umsatz gebucht"
"DE02120300000000202051";"03.03.26";"03.03.26";"KARTENZAHLUNG";"Brot";"";"";"";"";"";"";"Bäckerei Ost";"";"";"-3,10";"EUR";"Umsatz vorgemerkt"
"""
    booked, pending = read_csv(text, "cp1252")[1]
    assert booked == TransactionRecord(
        amount=Decimal("-1044.50"),
        currency="EUR",
        booking_date=date(2026, 3, 2),
        value_date=date(2026, 2, 28),  # interest days of 30 February become the month's last
        counterpart_name="Stadtwerke Süd",
        counterpart_iban="DE02100500000054540402",
        counterpart_bic="BELADEBEXXX",
        creditor_id="DE98ZZZ09999999999",
        mandate_reference="M-17",
        end_to_end_id="E2E-4",
        purpose="Strom Februar",
        bank_text="FOLGELASTSCHRIFT",
    )
    assert (pending.status, pending.amount) == ("pending", Decimal("-3.10"))


@pytest.mark.requirement("readers.csv.sparkasse")
def test_the_two_camt_layouts_and_the_mt940_layout_are_told_apart(read_csv: Read) -> None:
    row = '"X1";"02.03.26";"02.03.26";"A";"B";"";"";"";"";"";"";"N";"";"";"-1,00";"EUR";"Umsatz gebucht"'
    assert len(read_csv(f"{SPARKASSE}\n{row}\n")[1]) == 1
    assert len(read_csv(f'{SPARKASSE};"Kategorie"\n{row};"Sonstiges"\n')[1]) == 1
    mt940 = (
        '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";'
        '"Beguenstigter/Zahlungspflichtiger";"Kontonummer";"BLZ";"Betrag";"Waehrung";"Info"\n'
        '"12345678";"02.03.26";"02.03.26";"A";"B";"N";"DE02100500000054540402";"BELADEBEXXX";"7,00";"EUR";"Umsatz gebucht"\n'
    )
    [account], [booking], _ = read_csv(mt940)
    assert account == AccountRecord(
        stable_key="Sparkasse/12345678", currency="EUR", kind="checking", bank_name="Sparkasse"
    )
    assert booking.counterpart_iban == "DE02100500000054540402"


@pytest.mark.requirement("readers.csv.sparkasse")
def test_a_sparkasse_card_number_is_kept_without_its_middle(read_csv: Read) -> None:
    text = (
        '"Umsatz getätigt von";"Belegdatum";"Buchungsdatum";"Originalbetrag";"Originalwährung";"Umrechnungskurs";'
        '"Buchungsbetrag";"Buchungswährung";"Transaktionsbeschreibung";"Transaktionsbeschreibung Zusatz";"Buchungsreferenz"\n'
        '"4000001234567899";"01.03.26";"02.03.26";"-10,00";"USD";"1,1";"-9,10";"EUR";"Kiosk";"Airport";"77"\n'
    )
    [account], [booking], _ = read_csv(text, "cp1252")
    assert (account.stable_key, account.kind) == ("Sparkasse/400000******7899", "credit_card")
    assert (booking.amount, booking.original_amount, booking.original_currency) == (
        Decimal("-9.10"), Decimal("-10.00"), "USD",
    )  # fmt: skip


@pytest.mark.requirement("readers.csv.dkb")
def test_dkb_before_2023_has_its_balance_above_and_daily_balances_between(read_csv: Read) -> None:
    text = """"Kontonummer:";"DE02120300000000202051 / Girokonto";

"Von:";"01.01.2020";
"Bis:";"31.01.2020";
"Kontostand vom 31.01.2020:";"1.111,11 EUR";

"Buchungstag";"Wertstellung";"Buchungstext";"Auftraggeber / Begünstigter";"Verwendungszweck";"Kontonummer";"BLZ";"Betrag (EUR)";"Gläubiger-ID";"Mandatsreferenz";"Kundenreferenz";
"20.01.2020";"";"";"";"Tagessaldo";"";"";"1.111,11";"";"";"";
"16.01.2020";"17.01.2020";"Lastschrift";"Markt";"Danke";"DE02100500000054540402";"BELADEBEXXX";"-15,37";"";"";"";
"""
    [account], [booking], [statement] = read_csv(text, "cp1252")
    assert account == AccountRecord(
        stable_key="DE02120300000000202051",
        currency="EUR",
        iban="DE02120300000000202051",
        name="Girokonto",
        kind="checking",
        bank_name="DKB",
    )
    assert booking.amount == Decimal("-15.37")
    assert statement == StatementRecord(closing=Decimal("1111.11"), closing_date=date(2020, 1, 31))


@pytest.mark.requirement("readers.csv.dkb")
def test_dkb_from_2023_names_payer_or_payee_by_the_sign(read_csv: Read) -> None:
    text = """\ufeff"Girokonto","DE02120300000000202051"
""
"Kontostand vom 30.06.2026:","5.000,01 EUR"
""
"Buchungsdatum","Wertstellung","Status","Zahlungspflichtige*r","Zahlungsempfänger*in","Verwendungszweck","Umsatztyp","IBAN","Betrag (€)","Gläubiger-ID","Mandatsreferenz","Kundenreferenz"
"01.06.26","01.06.26","Gebucht","Firma
Nord","Ada Muster","Lohn","Eingang","DE02100500000054540402","1.000","","",""
"02.06.26","","Vorgemerkt","Ada Muster","Kino West","Film","Ausgang","","-8,67 €","","",""
"""
    salary, cinema = read_csv(text)[1]
    assert (salary.counterpart_name, salary.amount) == ("Firma Nord", Decimal("1000"))
    assert (cinema.counterpart_name, cinema.amount, cinema.status) == ("Kino West", Decimal("-8.67"), "pending")


@pytest.mark.requirement("readers.csv.dkb")
def test_both_dkb_card_layouts_are_read(read_csv: Read) -> None:
    old = """"Kreditkarte:";"4000________7899";

"Saldo:";"-12.5 EUR";
"Datum:";"31.01.2020";

"Umsatz abgerechnet und nicht im Saldo enthalten";"Wertstellung";"Belegdatum";"Beschreibung";"Betrag (EUR)";"Ursprünglicher Betrag";
"Nein";"16.01.2020";"15.01.2020";"Hotel";"-12,50";"-14,00 USD";
"""
    [account], [booking], [statement] = read_csv(old, "cp1252")
    assert account.stable_key == "DKB/4000________7899"
    assert (booking.original_amount, booking.original_currency) == (Decimal("-14.00"), "USD")
    assert statement == StatementRecord(closing=Decimal("-12.5"), closing_date=date(2020, 1, 31))
    new = """"Karte";"Visa Kreditkarte";"4000 •••• •••• 7899"
""
"Saldo vom 31.12.2025:";"-37,8 EUR"
""
"Belegdatum";"Wertstellung";"Status";"Beschreibung";"Umsatztyp";"Betrag (€)";"Fremdwährungsbetrag"
"22.12.25";"23.12.25";"Gebucht";"Hotel";"Im Geschäft";"-1.013,47 €";""
"""
    [account], [booking], [statement] = read_csv(new)
    assert (account.name, account.kind) == ("Visa Kreditkarte", "credit_card")
    assert (booking.booking_date, booking.amount) == (date(2025, 12, 23), Decimal("-1013.47"))
    assert statement.closing == Decimal("-37.8")


@pytest.mark.requirement("readers.csv.ing")
def test_ing_has_two_currency_columns_and_its_balance_above_thirteen_lines(read_csv: Read) -> None:
    text = """Umsatzanzeige;Datei erstellt am: 25.07.2026 12:00
;Letztes Update: aktuell

IBAN;DE02 1203 0000 0000 2020 51
Kontoname;Girokonto
Bank;ING
Kunde;Ada Muster
Zeitraum;01.06.2026 - 30.06.2026
Saldo;1.234,00;EUR

In der CSV-Datei finden Sie alle bereits gebuchten Umsätze.

Buchung;Valuta;Auftraggeber/Empfänger;Buchungstext;Verwendungszweck;Saldo;Währung;Betrag;Währung
08.06.2026;08.06.2026;Markt;Lastschrift;Danke;1.234,00;EUR;-500,00;EUR
07.06.2026;07.06.2026;Firma;Gutschrift;Lohn;1.734,00;EUR;1.000,00;EUR
"""
    [account], [first, _], [statement] = read_csv(text, "cp1252")
    assert (account.iban, account.name) == ("DE02120300000000202051", "Girokonto")
    assert first.amount == Decimal("-500.00")
    assert statement == StatementRecord(
        opening=Decimal("734.00"),
        opening_date=date(2026, 6, 7),
        closing=Decimal("1234.00"),
        closing_date=date(2026, 7, 25),
        is_authoritative=True,
    )


@pytest.mark.requirement("readers.csv.comdirect")
def test_comdirect_holds_several_accounts_one_below_the_other(read_csv: Read) -> None:
    text = """;
"Umsätze Girokonto";"Zeitraum: 30 Tage";
"Neuer Kontostand";"900,00 EUR";

"Buchungstag";"Wertstellung (Valuta)";"Vorgang";"Buchungstext";"Umsatz in EUR";
"offen";"--";"Kartenverfügung";"Buchungstext: Kiosk Ref. 1";"-4,00";
"12.03.2026";"12.03.2026";"Übertrag / Überweisung";"Empfänger: Ada Muster Kto/IBAN: DE02100500000054540402 BLZ/BIC: BELADEBEXXX Buchungstext: Miete März Ref. AB12";"-100,00";

"Alter Kontostand";"1.000,00 EUR";

"Umsätze Visa-Karte (Kreditkarte)";"Zeitraum: 30 Tage";
"Neuer Kontostand";"-20,00 EUR";

"Buchungstag";"Umsatztag";"Vorgang";"Referenz";"Buchungstext";"Umsatz in EUR";
"11.03.2026";"10.03.2026";"Visa-Umsatz";"9/8";"HOTEL";"-20,00";

"Alter Kontostand";"0,00 EUR";

"Umsätze Depot";"Zeitraum: 30 Tage";

"Geschäftstag";"Stück / Nom.";"Bezeichnung";"WKN";"Währung";"Ausführungskurs";"Umsatz in EUR";
"11.03.2026";"3";"Fonds";"A0A0A0";"EUR";"10,00";"-30,00";

"Umsätze Tagesgeld PLUS-Konto";"Zeitraum: 30 Tage";
"Neuer Kontostand";"50,00 EUR";
"Keine Umsätze vorhanden."

"Alter Kontostand";"50,00 EUR";
"""
    accounts, rows, statements = read_csv(text, "cp1252")
    assert [(account.stable_key, account.kind) for account in accounts] == [
        ("comdirect/Girokonto", "checking"),
        ("comdirect/Visa-Karte (Kreditkarte)", "credit_card"),
        ("comdirect/Tagesgeld PLUS-Konto", "savings"),
    ]
    pending, rent, hotel = rows
    assert (pending.status, pending.booking_date) == ("pending", date(2026, 3, 12))
    assert (rent.counterpart_name, rent.counterpart_iban, rent.purpose, rent.references) == (
        "Ada Muster", "DE02100500000054540402", "Miete März", ("bank:AB12",),
    )  # fmt: skip
    assert hotel.amount == Decimal("-20.00")
    assert [(s.opening, s.closing) for s in statements] == [
        (Decimal("1000.00"), Decimal("900.00")),
        (Decimal("0.00"), Decimal("-20.00")),
        (Decimal("50.00"), Decimal("50.00")),
    ]


@pytest.mark.requirement("readers.csv.volksbank")
def test_volksbank_before_2020_has_a_nameless_sign_column_and_balances_below(read_csv: Read) -> None:
    text = """Volksbank Musterland eG;;;;;;;;;;;;
;;;;;;;;;;;;
Umsatzanzeige;;;;;;;;;;;;
BLZ:;12030000;;;;;;;;;;;
Konto:;202051;;;;;;;;;;;
Abfrage von:;02.04.2018;;;;;;;;;;;
;;;;;;;;;;;;
Buchungstag;Valuta;Auftraggeber/Zahlungsempfänger;Empfänger/Zahlungspflichtiger;Konto-Nr.;IBAN;BLZ;BIC;Vorgang/Verwendungszweck;Kundenreferenz;Währung;Umsatz;
29.03.2018;29.03.2018;Ada Muster;Stadtwerke;;DE02100500000054540402;;BELADEBEXXX;"Lastschrift
Strom";;EUR;50,00;S
28.03.2018;28.03.2018;Ada Muster;Firma;;;;;Lohn;;EUR;1.000,00;H
;;;;;;;;;;;;
01.03.2018;;;;;;;;;Anfangssaldo;EUR;100,00;H
30.03.2018;;;;;;;;;Endsaldo;EUR;1.050,00;H
"""
    [account], [power, salary], [statement] = read_csv(text, "cp1252")
    assert account.stable_key == "Volksbank/202051"
    assert (power.amount, power.purpose) == (Decimal("-50.00"), "Lastschrift Strom")
    assert salary.amount == Decimal("1000.00")
    assert statement == StatementRecord(
        opening=Decimal("100.00"),
        opening_date=date(2018, 3, 28),
        closing=Decimal("1050.00"),
        closing_date=date(2018, 3, 30),
        is_authoritative=True,
    )


@pytest.mark.requirement("readers.csv.volksbank")
def test_atruvia_closes_with_the_running_balance_of_the_newest_row(read_csv: Read) -> None:
    header = (
        "Bezeichnung Auftragskonto;IBAN Auftragskonto;BIC Auftragskonto;Bankname Auftragskonto;Buchungstag;Valutadatum;"
        "Name Zahlungsbeteiligter;IBAN Zahlungsbeteiligter;BIC (SWIFT-Code) Zahlungsbeteiligter;Buchungstext;"
        "Verwendungszweck;Betrag;Waehrung;Saldo nach Buchung;Bemerkung;Kategorie;Steuerrelevant;Glaeubiger ID;Mandatsreferenz\n"
    )
    row = "Giro;DE02120300000000202051;GENODEF1XXX;VR Bank;{day};{day};N;;;T;Z;{amount};EUR;{balance};;;;;\n"
    text = header + "".join(
        row.format(day=day, amount=amount, balance=balance)
        for day, amount, balance in [
            ("03.03.2026", "-5,00", "95,00"),
            ("03.03.2026", "60,00", "100,00"),
            ("02.03.2026", "40,00", "40,00"),
        ]
    )
    [statement] = read_csv(text)[2]
    assert statement == StatementRecord(
        opening=Decimal("0.00"),
        opening_date=date(2026, 3, 2),
        closing=Decimal("95.00"),
        closing_date=date(2026, 3, 3),
        is_authoritative=True,
    )


@pytest.mark.requirement("readers.csv.deutsche-bank")
def test_deutsche_bank_closes_with_the_line_below_its_table(read_csv: Read) -> None:
    text = """Umsätze Girokonto;;;Kundennummer: 100 1234567
01.02.2026 - 28.02.2026
Letzter Kontostand;;;;5.000,00;EUR
Vorgemerkte und noch nicht gebuchte Umsätze sind nicht Bestandteil dieser Übersicht.
Buchungstag;Wert;Umsatzart;Begünstigter / Auftraggeber;Verwendungszweck;IBAN;BIC;Kundenreferenz;Mandatsreferenz ;Gläubiger ID;Fremde Gebühren;Betrag;Abweichender Empfänger;Anzahl der Aufträge;Anzahl der Schecks;Soll;Haben;Währung
02.02.2026;02.02.2026;SEPA-Lastschrift;Stadtwerke;Strom;DE02100500000054540402;BELADEBEXXX;R1;M1;;;;;;;-50,00;;EUR
03.02.2026;03.02.2026;Gehalt;Firma;Lohn;;;;;;;;;;;;1.000,00;EUR
Kontostand;28.02.2026;;;5.950,00;EUR
"""
    _, [power, salary], [statement] = read_csv(text, "cp1252")
    assert (power.amount, salary.amount) == (Decimal("-50.00"), Decimal("1000.00"))
    assert (statement.closing, statement.closing_date) == (Decimal("5950.00"), date(2026, 2, 28))


@pytest.mark.requirement("readers.csv.postbank")
def test_old_and_new_postbank_layouts_are_read(read_csv: Read) -> None:
    old = """Umsatzauskunft;
Name;Ada Muster;
IBAN;DE02100100100006820101;
Aktueller Kontostand;1.010,00 €;

"Buchungstag";"Wertstellung";"Umsatzart";"Buchungsdetails";"Auftraggeber";"Empfänger";"Betrag (€)";"Saldo (€)"
"03.02.2020";"03.02.2020";"Gutschrift";"Lohn";"Firma";"Ada Muster";"10,00 €";"1.010,00 €"
"""
    assert [(row.amount, row.counterpart_name) for row in read_csv(old, "cp1252")[1]] == [(Decimal("10.00"), "Firma")]
    new = """Umsätze;
Konto;Girokonto;DE02100100100006820101
Buchungstag;Wert;Umsatzart;Begünstigter / Auftraggeber;Verwendungszweck;IBAN / Kontonummer;BIC;Kundenreferenz;Mandatsreferenz;Gläubiger ID;Fremde Gebühren;Betrag;Abweichender Empfänger;Anzahl der Aufträge;Anzahl der Schecks;Soll;Haben;Währung
3.2.2026;3.2.2026;SEPA Überweisung;Firma;Lohn;DE02100500000054540402;;;;;;10;;;;;10;EUR
"""
    assert [row.amount for row in read_csv(new)[1]] == [Decimal("10")]


@pytest.mark.requirement("readers.csv.profiles")
def test_kontist_counts_in_cents_and_1822direkt_splits_its_text(read_csv: Read) -> None:
    kontist = "booking_date,valuta_date,amount,name,purpose,end_to_end_id,booking_status\n2026-03-02,2026-03-02,-1250,Shop,Stift,,booked\n"
    assert read_csv(kontist)[1][0].amount == Decimal("-12.50")
    direkt = (
        "Kontonummer;Datum/Zeit;Buchungstag;Wertstellung;Soll/Haben;Buchungsschlüssel;Buchungsart;Empfänger/Auftraggeber Name;"
        "Empfänger/Auftraggeber IBAN;Empfänger/Auftraggeber BIC;Glaeubiger-ID;Mandatsreferenz;Mandatsdatum;Vwz.0;Vwz.1;Vwz.2\n"
        "202051;02.03.2026 11:00;02.03.2026;02.03.2026;-1.000,00;005;Lastschrift;Vermieter;;;;;;Miete;März;\n"
    )
    row = read_csv(direkt, "cp1252")[1][0]
    assert (row.amount, row.purpose, row.gvc) == (Decimal("-1000.00"), "Miete März", "005")


@pytest.mark.requirement("readers.csv.profiles")
def test_a_sparda_bank_writes_account_and_balance_into_a_table_of_one_row(read_csv: Read) -> None:
    text = """"Umsätze ab";"Enddatum";"Kontonummer";"Saldo";"Währung"
"01.01.2026";"31.01.2026";"1234567";"1.234,56";"EUR"
"Weitere gewählte Suchoptionen:";"keine"

"Buchungstag";"Wertstellungstag";"Verwendungszweck";"Umsatz";"Währung"
"20.01.2026";"20.01.2026";"Laden";"-11,99";"EUR";""
"* noch nicht ausgeführte Umsätze"
"""
    [account], [row], [statement] = read_csv(text)
    assert (account.stable_key, account.bank_name) == ("Sparda-Bank/1234567", "Sparda-Bank")
    assert (row.amount, statement.closing) == (Decimal("-11.99"), Decimal("1234.56"))
    two_rows = text.replace('"Weitere gewählte Suchoptionen:";"keine"', '"01.02.2026";"28.02.2026";"7";"1,00";"EUR"')
    assert read_csv(two_rows)[2][0].closing is None
