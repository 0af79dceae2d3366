"""One account as ten formats tell it: fields that are left out, cut, in capitals, umlauts written out."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from xml.sax.saxutils import escape

from analytics.records import Record
from connectors.formats import read_records

IBAN = "DE02120300000000202051"
OPENING = Decimal("1000.00")
MT940_PURPOSE_FIELDS = (*range(20, 30), *range(60, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A booking as the bank knows it."""

    day: date
    amount: Decimal
    name: str
    purpose: str
    reference: str
    value_day: date = field(default=date.min)
    iban: str | None = None
    mandate: str | None = None
    creditor: str | None = None

    @property
    def value(self) -> date:
        """The value date, which is the booking date unless it is said."""
        return self.day if self.value_day == date.min else self.value_day


LEDGER = """
    2026-10-01 | -850.00  | Hausverwaltung Müller GmbH & Co. KG | Miete Oktober 2026 Wohnung 12 Kastanienallee 5 links
    2026-10-01 | 2450.37  | Jörg Übermut Maschinenbau AG | Lohn/Gehalt 09/2026 Personalnummer 4711-0815
    2026-10-02 | -3.20    | Café Zur schönen Aussicht | Kartenzahlung girocard 02.10.2026 08.15 Uhr
    2026-10-02 | -3.20    | Café Zur schönen Aussicht | Kartenzahlung girocard 02.10.2026 08.15 Uhr
    2026-10-02 | -49.99   | Stadtwerke Köln | Strom Konto 770001234567 | DE62370400440123456789 | M-4711 | DE98ZZZ09
    2026-10-05 | -9.99    | PayPal (Europe) S.a.r.l. et Cie. | 1029384756 PP.1234.PP Spotify AB, Ihr Einkauf bei Spotify
    2026-10-05 | -9.99    | PayPal (Europe) S.a.r.l. et Cie. | 5647382910 PP.1234.PP Netflix, Ihr Einkauf bei Netflix
    2026-10-06 | -120.00  | Grüner Strauß Inhaberin Anna Weiß | Rechnung Nr. 2026-1001 vom 30.09.2026 Blumen für Oma
    2026-10-07 | -25.00   | Öffentliche Bücherei | Jahresbeitrag 2026
    2026-10-08 | 15.00    | Tom Schäfer | Pizza gestern
    2026-10-08 | 15.00    | Ute Schäfer | Pizza gestern
    2026-10-09 | -60.00   | Sparkasse Köln | Bargeldauszahlung GA NR00012345 BLZ37050198 09.10/18.22UHR
    2026-10-12 | -17.85   | REWE Markt GmbH | VISA Debitkartenumsatz vom 10.10.2026 REWE SAGT DANKE 40123
    2026-10-12 | -17.85   | DM Drogerie Markt | VISA Debitkartenumsatz vom 10.10.2026 DM FIL. 1234
    2026-10-13 | -1250.00 | Finanzamt Köln-Süd | Steuernr. 123/4567/8901 ESt VZ 3.Vj.2026
    2026-10-14 | 199.00   | Zalando SE | Gutschrift Bestellung 10203040506070 Retoure
    2026-10-15 | -8.00    | Bank | Kontoführungsgebühr
    2026-10-15 | -500.00  | Eva Mustermann | Sparen
    2026-10-16 | -33.40   | Bäckerei Brötchen & Söhne oHG | Sammelrechnung 40-2026
    2026-10-19 | -2.80    | Kiosk am Ring | Kaffee
    2026-10-19 | -2.80    | Kiosk am Ring | Kaffee
    2026-10-20 | -75.50   | Tankstelle Özdemir | Karte 1234 Tanken 19.10.
    2026-10-21 | -12.00   | FC Rot-Weiß 1908 | Beitrag 10023 IV/2026 | DE44500105175407324931 | MGB-10023 | DE11ZZZ01
    2026-10-22 | 1000.00  | Großmutter Käthe | Zum Geburtstag alles Gute!
    2026-10-23 | -44.90   | Versicherung Süd VVaG | Haftpflicht V-12/3456 | DE70700500000000012345 | VKS-99 | DE22ZZZ02
    2026-10-26 | -89.00   | Deutsche Bahn AG | BahnCard 25 Auftrag 7Q8W9E
"""


def rows(table: str = LEDGER) -> list[Row]:
    """Bookings from lines `day | amount | name | purpose | iban | mandate | creditor`."""
    found = []
    for number, line in enumerate(filter(None, map(str.strip, table.splitlines())), start=1):
        day, amount, name, purpose, *rest = [cell.strip() for cell in line.split("|")]
        iban, mandate, creditor = [cell or None for cell in (rest + [""] * 3)[:3]]
        found.append(
            Row(
                day=date.fromisoformat(day),
                amount=Decimal(amount),
                name=name,
                purpose=purpose,
                reference=f"2026{number:06}",
                iban=iban,
                mandate=mandate,
                creditor=creditor,
            )
        )
    return found


def records_in(format_: str, told: Sequence[Row], opening: Decimal = OPENING) -> Iterator[Record]:
    """What the reader of the format makes of these rows."""
    return read_records(io.BytesIO((FORMATS | JOINED)[format_](told, opening)))


def _written_out(text: str) -> str:
    for letter, spelling in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        text = text.replace(letter, spelling).replace(letter.upper(), spelling.capitalize())
    return text


def _camt(version: str) -> Callable[[Sequence[Row], Decimal], bytes]:
    def written(told: Sequence[Row], opening: Decimal) -> bytes:
        party = (lambda name: f"<Pty>{name}</Pty>") if version == "08" else (lambda name: name)
        sts = "<Sts><Cd>BOOK</Cd></Sts>" if version == "08" else "<Sts>BOOK</Sts>"
        entries = []
        for row in told:
            side, who = ("CRDT", "Dbtr") if row.amount > 0 else ("DBIT", "Cdtr")
            account = f"<{who}Acct><Id><IBAN>{row.iban}</IBAN></Id></{who}Acct>" if row.iban else ""
            mandate = f"<MndtId>{row.mandate}</MndtId>" if row.mandate else ""
            entries.append(
                f'<Ntry><Amt Ccy="EUR">{abs(row.amount)}</Amt><CdtDbtInd>{side}</CdtDbtInd>{sts}'
                f"<BookgDt><Dt>{row.day}</Dt></BookgDt><ValDt><Dt>{row.value}</Dt></ValDt>"
                f"<AcctSvcrRef>{row.reference}</AcctSvcrRef><NtryDtls><TxDtls><Refs>{mandate}</Refs><RltdPties>"
                f"<{who}>{party(f'<Nm>{escape(row.name)}</Nm>')}</{who}>{account}</RltdPties>"
                f"<RmtInf><Ustrd>{escape(row.purpose)}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>"
            )
        closing = opening + sum((row.amount for row in told), Decimal(0))
        return (
            f'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version}"><BkToCstmrStmt><Stmt>'
            f"<Acct><Id><IBAN>{IBAN}</IBAN></Id><Ccy>EUR</Ccy></Acct>{_balance('OPBD', opening, told[0].day)}"
            f"{_balance('CLBD', closing, told[-1].day)}{''.join(entries)}</Stmt></BkToCstmrStmt></Document>"
        ).encode()

    return written


def _balance(code: str, amount: Decimal, day: date) -> str:
    side = "CRDT" if amount >= 0 else "DBIT"
    return (
        f'<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">{abs(amount)}</Amt>'
        f"<CdtDbtInd>{side}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>"
    )


def _mt940(*, structured: bool) -> Callable[[Sequence[Row], Decimal], bytes]:
    def signed(amount: Decimal) -> str:
        return f"{'D' if amount < 0 else 'C'}"

    def written(told: Sequence[Row], opening: Decimal) -> bytes:
        closing = opening + sum((row.amount for row in told), Decimal(0))
        lines = [":20:STARTUMS", f":25:{IBAN}", ":28C:1/1", _mt940_balance("60F", told[0].day, opening)]
        for row in told:
            lines.append(f":61:{row.value:%y%m%d}{row.day:%m%d}{signed(row.amount)}{_comma(abs(row.amount))}NMSCNONREF")
            head = f"MREF+{row.mandate} " if structured and row.mandate else ""
            text = _written_out(f"{head}SVWZ+{row.purpose}" if structured else row.purpose)
            parts = [text[start : start + 27] for start in range(0, len(text), 27)]
            name = _written_out(row.name)[:54]
            fields = [f"?{number}{part}" for number, part in zip(MT940_PURPOSE_FIELDS, parts, strict=False)]
            fields.append(f"?32{name[:27]}" + (f"?33{name[27:]}" if name[27:] else ""))
            lines.append(f":86:{'166' if row.amount > 0 else '116'}?00UMSATZ{''.join(fields)}")
        lines += [_mt940_balance("62F", told[-1].day, closing), "-"]
        return "\r\n".join(lines).encode()

    return written


def _mt940_balance(tag: str, day: date, amount: Decimal) -> str:
    return f":{tag}:{'D' if amount < 0 else 'C'}{day:%y%m%d}EUR{_comma(abs(amount))}"


def _comma(amount: Decimal) -> str:
    return f"{amount:.2f}".replace(".", ",")


def _ofx(told: Sequence[Row], opening: Decimal) -> bytes:
    closing = opening + sum((row.amount for row in told), Decimal(0))
    rows = "".join(
        f"<STMTTRN><TRNTYPE>OTHER<DTPOSTED>{row.day:%Y%m%d}<TRNAMT>{row.amount}<FITID>{number}"
        f"<NAME>{escape(row.name[:32])}<MEMO>{escape(row.purpose)}</STMTTRN>"
        for number, row in enumerate(told)
    )
    return (
        "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nSECURITY:NONE\nENCODING:UTF-8\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS>"
        f"<CURDEF>EUR<BANKACCTFROM><BANKID>12030000<ACCTID>{IBAN}<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>{rows}"
        f"</BANKTRANLIST><LEDGERBAL><BALAMT>{closing}<DTASOF>{told[-1].day:%Y%m%d}</LEDGERBAL></STMTRS></STMTTRNRS>"
        "</BANKMSGSRSV1></OFX>"
    ).encode()


def _dkb(told: Sequence[Row], opening: Decimal) -> bytes:
    lines = [
        '"Buchungsdatum";"Wertstellung";"Status";"Zahlungspflichtige*r";"Zahlungsempfänger*in";"Verwendungszweck";'
        '"Umsatztyp";"IBAN";"Betrag (€)";"Gläubiger-ID";"Mandatsreferenz";"Kundenreferenz"'
    ]
    for row in told:
        payer, payee = (row.name, "Eva") if row.amount > 0 else ("Eva", row.name)
        cells = (
            f"{row.day:%d.%m.%y}", f"{row.value:%d.%m.%y}", "Gebucht", payer, payee, row.purpose,
            "Eingang" if row.amount > 0 else "Ausgang", row.iban or "", _comma(row.amount), row.creditor or "",
            row.mandate or "", "",
        )  # fmt: skip
        lines.append(";".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines).encode()


def _sparkasse(told: Sequence[Row], opening: Decimal) -> bytes:
    lines = [
        '"Auftragskonto";"Buchungstag";"Valutadatum";"Buchungstext";"Verwendungszweck";'
        '"Beguenstigter/Zahlungspflichtiger";"Kontonummer";"BLZ";"Betrag";"Waehrung";"Info"'
    ]
    for row in told:
        cells = (
            IBAN, f"{row.day:%d.%m.%y}", f"{row.value:%d.%m.%y}", "BUCHUNG", row.purpose, row.name, "", "",
            _comma(row.amount), "EUR", "Umsatz gebucht",
        )  # fmt: skip
        lines.append(";".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines).encode()


def _plain(text: Callable[[str], str]) -> Callable[[Sequence[Row], Decimal], bytes]:
    def written(told: Sequence[Row], opening: Decimal) -> bytes:
        lines = ["Buchungstag;Empfänger;Verwendungszweck;Betrag;Währung"]
        lines += [
            f'{row.day:%d.%m.%Y};"{text(row.name)}";"{text(row.purpose)}";{_comma(row.amount)};EUR' for row in told
        ]
        return "\n".join(lines).encode()

    return written


def _commerzbank(told: Sequence[Row], opening: Decimal) -> bytes:
    lines = ["Buchungstag;Wertstellung;Umsatzart;Buchungstext;Betrag;Währung;IBAN Kontoinhaber"]
    lines += [
        f"{row.day:%d.%m.%Y};{row.value:%d.%m.%Y};Überweisung;{row.name} {row.purpose} End-to-End-Ref.: keine;"
        f"{_comma(row.amount)};EUR;{IBAN}"
        for row in told
    ]
    return "\n".join(lines).encode()


def _ubs(told: Sequence[Row], opening: Decimal) -> bytes:
    head = "Abschlussdatum;Buchungsdatum;Valutadatum;Währung;Belastung;Gutschrift;Saldo;Beschreibung1;Beschreibung2"
    lines = [f"{head};Beschreibung3"]
    for row in told:
        sides = f"{-row.amount};" if row.amount < 0 else f";{row.amount}"
        texts = f'"{row.name};Weg 1; 8000 Zürich";Dauerauftrag;"Zahlungsgrund: {row.purpose}; Kosten: 0"'
        lines.append(f"{row.day};{row.day};{row.value};EUR;{sides};;{texts}")
    return "\n".join(lines).encode()


def _ing_nl(told: Sequence[Row], opening: Decimal) -> bytes:
    lines = ["Datum,Naam / Omschrijving,Rekening,Tegenrekening,Code,Af Bij,Bedrag (EUR),MutatieSoort,Mededelingen"]
    for row in told:
        side = "Af" if row.amount < 0 else "Bij"
        texts = f"Naam: {row.name} Omschrijving: {row.purpose} IBAN: {row.iban} Valutadatum: {row.value:%d-%m-%Y}"
        cells = (f"{row.day:%Y%m%d}", row.name, IBAN, row.iban, "GT", side, _comma(abs(row.amount)), "Online", texts)
        lines.append(",".join(f'"{cell}"' for cell in cells))
    return "\n".join(lines).encode()


def saved_by_a_spreadsheet(content: bytes) -> bytes:
    """A CSV file after a spreadsheet has read and written it: long numbers are approximate, others lose zeros."""

    def cell(found: re.Match[bytes]) -> bytes:
        digits = found[1].lstrip(b"0")
        return digits if len(digits) < 12 else f"{int(digits):.5E}".replace(".", ",").encode()

    return re.sub(rb'"(\d{5,})"', cell, content)


JOINED: dict[str, Callable[[Sequence[Row], Decimal], bytes]] = {
    "Commerzbank": _commerzbank,
    "UBS": _ubs,
    "ING NL": _ing_nl,
}
"""Formats that write names into the purpose, with words of the bank around them."""
FORMATS: dict[str, Callable[[Sequence[Row], Decimal], bytes]] = {
    "camt.053.001.02": _camt("02"),
    "camt.053.001.08": _camt("08"),
    "MT940": _mt940(structured=False),
    "MT940 with SVWZ+": _mt940(structured=True),
    "OFX": _ofx,
    "DKB": _dkb,
    "Sparkasse": _sparkasse,
    "CSV without value date": _plain(str),
    "CSV cut at 27": _plain(lambda text: text[:27]),
    "CSV in capitals": _plain(lambda text: _written_out(text).upper()),
}
