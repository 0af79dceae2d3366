"""camt.052, .053 and .054: what an entry, a balance and a statement mean."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.camt import detect, read
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile

Text = Callable[..., str]
Gather = Callable[..., Any]

OWN = "DE89370400440532013000"
OTHER = "DE02120300000000202051"


def party(role: str, name: str, iban: str = "", *, version_8: bool = True, identification: str = "") -> str:
    inner = f"<Nm>{name}</Nm>{identification}"
    account = f"<{role}Acct><Id><IBAN>{iban}</IBAN></Id></{role}Acct>" if iban else ""
    return f"<{role}>{f'<Pty>{inner}</Pty>' if version_8 else inner}</{role}>{account}"


@pytest.mark.requirement("readers.camt")
def test_every_field_of_a_version_8_direct_debit(found: Gather, message: Text, entry: Text) -> None:
    creditor = party(
        "Cdtr",
        "Stadtwerke",
        OTHER,
        identification="<Id><PrvtId><Othr><Id>DE98ZZZ09999999999</Id></Othr></PrvtId></Id>",
    )
    booking = found(
        read,
        message(
            entry(
                more="<AcctSvcrRef>REF-1</AcctSvcrRef><BkTxCd><Prtry><Cd>NDDT+105+00931</Cd><Issr>DK</Issr></Prtry>"
                "</BkTxCd><NtryRef>77</NtryRef><AddtlNtryInf>FOLGELASTSCHRIFT</AddtlNtryInf>",
                details="<Refs><EndToEndId>E2E-1</EndToEndId><TxId>T-1</TxId><MndtId>M-1</MndtId></Refs>"
                "<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RDDT</Cd><SubFmlyCd>ESDD</SubFmlyCd></Fmly></Domn></BkTxCd>"
                f"<RltdPties>{creditor}</RltdPties>"
                "<RltdAgts><CdtrAgt><FinInstnId><BICFI>BYLADEM1001</BICFI><Nm>DKB</Nm></FinInstnId></CdtrAgt></RltdAgts>"
                "<Purp><Cd>ELEC</Cd></Purp><RmtInf><Ustrd>Abschlag</Ustrd><Ustrd>Januar</Ustrd></RmtInf>",
            )
        ),
    ).only
    assert booking.amount == Decimal("-12.34")
    assert booking.currency == "EUR"
    assert (booking.booking_date, booking.value_date) == (date(2026, 1, 30), date(2026, 1, 31))
    assert booking.status == "booked"
    assert booking.provider_id is None
    assert booking.references == ("servicer:REF-1", "txid:T-1", "ntryref:77")
    assert (booking.counterpart_name, booking.counterpart_iban) == ("Stadtwerke", OTHER)
    assert (booking.counterpart_bic, booking.counterpart_bank_name) == ("BYLADEM1001", "DKB")
    assert booking.creditor_id == "DE98ZZZ09999999999"
    assert (booking.mandate_reference, booking.end_to_end_id) == ("M-1", "E2E-1")
    assert booking.purpose == "Abschlag Januar"
    assert booking.purpose_code == "ELEC"
    assert booking.bank_transaction_code == "PMNT-RDDT-ESDD"
    assert (booking.gvc, booking.swift_code) == ("105", "NDDT")
    assert booking.bank_text == "FOLGELASTSCHRIFT"
    assert not booking.is_reversal
    assert not booking.is_return


@pytest.mark.requirement("readers.camt")
@pytest.mark.parametrize(
    "version", ["052.001.01", "052.001.02", "053.001.02", "053.001.04", "053.001.14", "054.001.10"]
)
def test_older_names_mean_the_same_in_every_version(version: str, found: Gather, message: Text, entry: Text) -> None:
    text = message(
        entry(
            status="BOOK",
            details=f"<RltdPties>{party('Cdtr', 'Bäckerei', OTHER, version_8=False)}</RltdPties>"
            "<RltdAgts><CdtrAgt><FinInstnId><BIC>BYLADEM1001</BIC></FinInstnId></CdtrAgt></RltdAgts>",
        ),
        version=version,
    )
    assert detect(text.encode())
    booking = found(read, text).only
    assert (booking.counterpart_name, booking.counterpart_bic, booking.status) == ("Bäckerei", "BYLADEM1001", "booked")


@pytest.mark.requirement("readers.camt.sign")
def test_only_the_indicator_gives_the_sign(found: Gather, message: Text, entry: Text) -> None:
    text = message(entry("5", "CRDT", more="<RvslInd>true</RvslInd>") + entry("7", "DBIT", more="<RvslInd>1</RvslInd>"))
    transactions = found(read, text).transactions
    assert [(row.amount, row.is_reversal) for row in transactions] == [(Decimal(5), True), (Decimal(-7), True)]


@pytest.mark.requirement("readers.camt.status")
def test_pending_and_future_entries_are_pending_and_stay_out_of_the_sum(
    found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    text = message(
        entry("1", "CRDT") + entry("2", "CRDT", status="PDNG") + entry("4", "CRDT", status="<Cd>FUTR</Cd>")
        + entry("8", "CRDT", status="INFO"),
        version="052.001.08",
        balances=balance("OPBD", "10") + balance("CLBD", "19"),
    )  # fmt: skip
    result = found(read, text)
    assert [row.status for row in result.transactions] == ["booked", "pending", "pending", "booked"]
    (statement,) = result.statements
    assert statement.is_authoritative
    assert statement.is_pending_complete


@pytest.mark.requirement("readers.camt.dates")
def test_a_missing_booking_date_is_the_value_date_then_the_settlement_then_the_statement(
    found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    settled = "<RltdDts><IntrBkSttlmDt>2026-01-28</IntrBkSttlmDt></RltdDts>"
    text = message(
        entry(dates="<ValDt><DtTm>2026-01-29T23:30:00-05:00</DtTm></ValDt>") + entry(dates="", details=settled)
        + entry(dates=""),
        balances=balance("CLBD", "1", "2026-01-31"),
    )  # fmt: skip
    days = [row.booking_date for row in found(read, text).transactions]
    assert days == [date(2026, 1, 29), date(2026, 1, 28), date(2026, 1, 31)]


@pytest.mark.requirement("readers.camt.dates")
def test_without_balances_the_last_day_is_the_end_of_the_period(found: Gather, message: Text, entry: Text) -> None:
    header = "<CreDtTm>2026-02-02T08:00:00</CreDtTm><FrToDt><ToDtTm>2026-02-01T23:59:59</ToDtTm></FrToDt>"
    assert found(read, message(entry(dates=""), header=header)).only.booking_date == date(2026, 2, 1)


@pytest.mark.requirement("readers.camt.counterpart")
@pytest.mark.parametrize(
    ("mark", "returned", "expected"),
    [("DBIT", False, "Creditor"), ("CRDT", False, "Debtor"), ("DBIT", True, "Debtor"), ("CRDT", True, "Creditor")],
)
def test_the_sign_says_who_the_counterpart_is_and_a_return_swaps_the_roles(
    mark: str, returned: bool, expected: str, found: Gather, message: Text, entry: Text
) -> None:
    details = f"<RltdPties>{party('Dbtr', 'Debtor')}{party('Cdtr', 'Creditor')}</RltdPties>"
    details += "<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>" if returned else ""
    booking = found(read, message(entry(mark=mark, details=details))).only
    assert (booking.counterpart_name, booking.is_return) == (expected, returned)


@pytest.mark.requirement("readers.camt.counterpart")
def test_the_party_with_our_own_iban_is_never_the_counterpart(found: Gather, message: Text, entry: Text) -> None:
    details = f"<RltdPties>{party('Dbtr', 'Other', OTHER)}{party('Cdtr', 'Me', OWN)}</RltdPties>"
    booking = found(read, message(entry(mark="DBIT", details=details))).only
    assert booking.counterpart_name == "Other"


@pytest.mark.requirement("readers.camt.counterpart")
def test_a_return_that_names_one_party_only_is_from_that_party(found: Gather, message: Text, entry: Text) -> None:
    details = f"<RltdPties>{party('Dbtr', 'Shop')}</RltdPties><RtrInf><Rsn><Cd>MD06</Cd></Rsn></RtrInf>"
    assert found(read, message(entry(mark="CRDT", details=details))).only.counterpart_name == "Shop"


@pytest.mark.requirement("readers.camt.counterpart")
def test_the_ultimate_party_stands_in_for_a_missing_name(found: Gather, message: Text, entry: Text) -> None:
    details = "<RltdPties><Cdtr><Nm>NOTPROVIDED</Nm></Cdtr><UltmtCdtr><Nm>Shop</Nm></UltmtCdtr></RltdPties>"
    assert found(read, message(entry(details=details))).only.counterpart_name == "Shop"


BATCH = "<NtryDtls>{}</NtryDtls>"


def detail(amount: str, name: str, mark: str = "DBIT") -> str:
    return (
        f"<TxDtls><Refs><TxId>{name}</TxId></Refs><Amt Ccy='EUR'>{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>"
        f"<RltdPties><Cdtr><Nm>{name}</Nm></Cdtr></RltdPties><RmtInf><Ustrd>for {name}</Ustrd></RmtInf></TxDtls>"
    )


@pytest.mark.requirement("readers.camt.batch")
def test_a_batch_is_split_when_its_details_add_up(found: Gather, message: Text, entry: Text) -> None:
    details = BATCH.format(detail("10.00", "A") + detail("4.00", "B") + detail("1.66", "C", "CRDT"))
    text = message(entry("12.34", more="<AcctSvcrRef>R</AcctSvcrRef><NtryRef>1</NtryRef>" + details))
    rows = found(read, text).transactions
    assert [row.amount for row in rows] == [Decimal("-10.00"), Decimal("-4.00"), Decimal("1.66")]
    assert [row.references for row in rows] == [
        ("servicer:R/0", "txid:A"),
        ("servicer:R/1", "txid:B"),
        ("servicer:R/2", "txid:C"),
    ]


@pytest.mark.requirement("readers.camt.batch")
@pytest.mark.parametrize(
    "second", [detail("2.33", "B"), detail("2.34", "B").replace("'EUR'", "'USD'"), detail("x", "B")]
)
def test_a_batch_that_does_not_add_up_stays_whole_with_all_its_texts(
    second: str, found: Gather, message: Text, entry: Text
) -> None:
    booking = found(read, message(entry("12.34", more=BATCH.format(detail("10.00", "A") + second)))).only
    assert (booking.amount, booking.purpose) == (Decimal("-12.34"), "for A for B")
    assert booking.counterpart_name is None


@pytest.mark.requirement("readers.camt.batch")
def test_a_batch_announced_without_its_details_is_one_booking(found: Gather, message: Text, entry: Text) -> None:
    text = message(entry(more="<NtryDtls><Btch><NbOfTxs>20</NbOfTxs></Btch></NtryDtls>"))
    assert found(read, text).only.amount == Decimal("-12.34")


@pytest.mark.requirement("readers.references")
def test_placeholders_are_no_references(found: Gather, message: Text, entry: Text) -> None:
    more = "<NtryRef>0000</NtryRef><AcctSvcrRef>NONREF</AcctSvcrRef>"
    refs = "<Refs><EndToEndId>NOTPROVIDED</EndToEndId><TxId>-</TxId><MndtId>not provided</MndtId></Refs>"
    booking = found(read, message(entry(more=more, details=refs))).only
    assert (booking.references, booking.end_to_end_id, booking.mandate_reference) == ((), None, None)


@pytest.mark.requirement("readers.camt.purpose")
@pytest.mark.parametrize(
    ("details", "purpose"),
    [
        ("<RmtInf><Ustrd>text</Ustrd><Strd><CdtrRefInf><Ref>RF18</Ref></CdtrRefInf></Strd></RmtInf>", "text"),
        ("<RmtInf><Strd><CdtrRefInf><Ref>RF18</Ref></CdtrRefInf></Strd></RmtInf>", "RF18"),
        ("<AddtlTxInf>of the detail</AddtlTxInf>", "of the detail"),
        ("<Refs><TxId>1</TxId></Refs>", "of the entry"),
    ],
)
def test_the_purpose_is_the_most_specific_text(
    details: str, purpose: str, found: Gather, message: Text, entry: Text
) -> None:
    text = message(entry(more="<AddtlNtryInf>of the entry</AddtlNtryInf>", details=details))
    assert found(read, text).only.purpose == purpose


@pytest.mark.requirement("readers.gvc")
def test_a_gvc_stands_in_for_a_missing_domain_code(found: Gather, message: Text, entry: Text) -> None:
    code = "<BkTxCd><Prtry><Cd>NTRF+166+00000</Cd><Issr>ZKA</Issr></Prtry></BkTxCd>"
    booking = found(read, message(entry(mark="CRDT", more=code))).only
    assert (booking.gvc, booking.bank_transaction_code) == ("166", "PMNT-RCDT-ESCT")


@pytest.mark.requirement("readers.gvc")
def test_another_country_s_three_digits_are_no_gvc(found: Gather, message: Text, entry: Text) -> None:
    code = "<BkTxCd><Prtry><Cd>702</Cd><Issr>FFI</Issr></Prtry></BkTxCd>"
    assert found(read, message(entry(more=code))).only.gvc is None


@pytest.mark.requirement("readers.camt.original_amount")
def test_the_amount_paid_abroad_is_kept_beside_ours(found: Gather, message: Text, entry: Text) -> None:
    details = (
        '<AmtDtls><InstdAmt><Amt Ccy="USD">15.00</Amt></InstdAmt><TxAmt><Amt Ccy="EUR">12.34</Amt></TxAmt></AmtDtls>'
    )
    booking = found(read, message(entry(details=details))).only
    assert (booking.original_amount, booking.original_currency) == (Decimal("15.00"), "USD")


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(
    ("version", "kinds", "opening", "closing"),
    [
        ("053.001.08", ["OPBD", "CLBD"], 1, 2),
        ("053.001.08", ["PRCD", "CLBD", "CLAV"], 1, 2),
        ("053.001.08", ["CLAV"], None, None),
        ("053.001.08", ["OPAV", "ITBD"], None, None),
        ("053.001.08", ["OPBD", "ITBD"], 1, 2),
        ("053.001.08", ["ITBD", "CLBD"], 1, 2),
        ("052.001.08", ["ITBD"], None, 1),
        ("052.001.08", ["ITAV", "OPAV"], None, None),
    ],
)
def test_only_booked_balances_count(
    version: str,
    kinds: list[str],
    opening: int | None,
    closing: int | None,
    found: Gather,
    message: Text,
    balance: Text,
) -> None:
    balances = "".join(balance(kind, str(amount)) for amount, kind in enumerate(kinds, start=1))
    (statement,) = found(read, message(version=version, balances=balances)).statements
    assert (statement.opening, statement.closing) == (opening, closing)


@pytest.mark.requirement("readers.camt.balances")
def test_a_balance_without_indicator_is_a_credit_and_debits_are_negative(
    found: Gather, message: Text, balance: Text
) -> None:
    balances = balance("OPBD", "5", mark="") + balance("CLBD", "7.5", mark="DBIT")
    (statement,) = found(read, message(balances=balances)).statements
    assert (statement.opening, statement.closing) == (Decimal(5), Decimal("-7.5"))
    assert statement.closing_date == date(2026, 1, 31)


@pytest.mark.requirement("readers.camt.balances")
@pytest.mark.parametrize(("closing", "adds_up"), [("87.66", True), ("87.67", False)])
def test_a_statement_that_adds_up_says_so(
    closing: str, adds_up: bool, found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    text = message(entry(), balances=balance("OPBD", "100") + balance("CLBD", closing))
    assert found(read, text).statements[0].is_authoritative is adds_up


@pytest.mark.requirement("readers.camt.accounts")
def test_each_statement_belongs_to_its_own_account(found: Gather, message: Text, entry: Text) -> None:
    one = message(entry("1"), account="<Id><Othr><Id>123 45</Id></Othr></Id><Ccy>USD</Ccy><Nm>Cash</Nm>")
    two = message(entry("2"), account=f"<Id><IBAN>{OWN}</IBAN></Id><Tp><Cd>SVGS</Cd></Tp>")
    inner = two[two.index("<Stmt>") : two.index("</BkToCstmrStmt>")]
    accounts = found(read, one.replace("</Stmt>", "</Stmt>" + inner)).accounts
    assert [(account.stable_key, account.iban, account.currency, account.kind) for account in accounts] == [
        ("12345", None, "USD", None),
        (OWN, OWN, "EUR", "savings"),
    ]
    assert accounts[0].name == "Cash"


@pytest.mark.requirement("readers.camt.paging")
def test_later_pages_keep_their_place_in_the_sequence(found: Gather, message: Text) -> None:
    header = "<StmtPgntn><PgNb>2</PgNb><LastPgInd>true</LastPgInd></StmtPgntn><ElctrncSeqNb>17</ElctrncSeqNb>"
    assert found(read, message(header=header)).statements[0].sequence == "17/2"


@pytest.mark.requirement("readers.camt")
def test_an_envelope_and_an_empty_line_before_the_declaration_do_no_harm(
    found: Gather, message: Text, entry: Text
) -> None:
    inner = message(entry())
    document = inner[inner.index("<Document") :]
    assert len(found(read, f"<message><AppHdr/>{document}</message>").transactions) == 1
    assert len(found(read, f"\r\n  {inner}").transactions) == 1


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("12.34", "12,34"), "entry 1: its amount is not a number."),
        (("12.34", "1e3"), "entry 1: its amount is not a number."),
        (("12.34", ""), "entry 1: has no amount."),
        (("DBIT", "DEBIT"), "entry 1: is neither credit nor debit."),
        (("2026-01-30", "2026-02-30"), "entry 1: its BookgDt is not a date."),
        (("</Ntry>", "</Entry>"), "line 1: not well-formed XML, or cut off."),
    ],
)
def test_a_damaged_entry_refuses_the_whole_file_and_is_named(
    change: tuple[str, str], reason: str, found: Gather, message: Text, entry: Text
) -> None:
    with pytest.raises(MalformedFile) as refusal:
        found(read, message(entry()).replace(*change))
    assert str(refusal.value) == reason


@pytest.mark.requirement("readers.refusal")
def test_a_message_without_a_statement_is_refused(found: Gather) -> None:
    with pytest.raises(MalformedFile, match="holds no statement"):
        found(read, '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt/></Document>')


@pytest.mark.requirement("readers.refusal")
def test_every_cut_of_a_file_is_refused(found: Gather, message: Text, entry: Text, balance: Text) -> None:
    text = message(entry(), balances=balance("CLBD", "1"))
    for end in range(text.index("<Document"), len(text) - 1):
        with pytest.raises(MalformedFile):
            found(read, text[:end])


@pytest.mark.requirement("security.xml")
@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE d SYSTEM "http://127.0.0.1:9/x.dtd">',
        "<!-- <a> --><!DOCTYPE d>",
    ],
)
def test_a_doctype_is_refused_whatever_it_declares(doctype: str, found: Gather, message: Text, entry: Text) -> None:
    text = message(entry()).replace('encoding="UTF-8"?>', f'encoding="UTF-8"?>{doctype}')
    with pytest.raises(UnsupportedFile, match="DOCTYPE"):
        found(read, text)
    with pytest.raises(UnsupportedFile, match="DOCTYPE"):
        found(read, text.replace("UTF-8", "UTF-16").encode("utf-16"))


@pytest.mark.requirement("security.xml")
@pytest.mark.parametrize("junk", ["<x/>" * 1_000_001, "<Ntry>" + "<x>1</x>" * 500_001, "<x " + 'a="" ' * 1_000_001])
def test_one_entry_of_a_million_elements_is_refused_early(junk: str, found: Gather, message: Text, entry: Text) -> None:
    with pytest.raises((LimitExceeded, MalformedFile)):
        found(read, message(entry()).replace("<Ntry>", junk + "<Ntry>", 1))


@pytest.mark.requirement("security.xml")
def test_deep_nesting_is_refused(found: Gather, message: Text, entry: Text) -> None:
    with pytest.raises(MalformedFile):
        found(read, message(entry()).replace("</Ntry>", "<a>" * 300 + "</a>" * 300 + "</Ntry>"))


@pytest.mark.requirement("security.xml")
def test_wrong_encodings_and_nul_bytes_are_refused_and_right_ones_read(
    found: Gather, message: Text, entry: Text
) -> None:
    text = message(entry(more="<AddtlNtryInf>Überweisung</AddtlNtryInf>"))
    with pytest.raises(MalformedFile):
        found(read, text.encode("latin-1"))
    with pytest.raises(MalformedFile):
        found(read, text.replace("12.34", "12\0.34"))
    for encoding in ("ISO-8859-1", "UTF-16"):
        encoded = text.replace("UTF-8", encoding).encode(encoding)
        assert detect(encoded)
        assert found(read, encoded).only.bank_text == "Überweisung"


@pytest.mark.requirement("security.text")
def test_control_and_bidi_characters_are_gone_and_long_texts_are_cut(found: Gather, message: Text, entry: Text) -> None:
    details = f"<RmtInf><Ustrd>a\u202eb\u0085\tc{'x' * 3000}</Ustrd></RmtInf>"
    purpose = found(read, message(entry(details=details))).only.purpose
    assert purpose.startswith("ab cx")
    assert len(purpose) == 2000


@pytest.mark.requirement("readers.camt.cards")
def test_a_card_payment_names_the_shop_and_its_kind(found: Gather, message: Text, entry: Text) -> None:
    shop = "<POI><Id><Id>1</Id><ShrtNm>Kiosk</ShrtNm></Id></POI>"
    card = f"<CardTx>{shop}<Tx><MrchntCtgyCd>5411</MrchntCtgyCd></Tx></CardTx>"
    for text in (entry(more=card), entry(details=card)):
        booking = found(read, message(text)).only
        assert (booking.merchant_name, booking.mcc) == ("Kiosk", "5411")
    no_code = card.replace("5411", "54x1")
    assert found(read, message(entry(more=no_code))).only.mcc is None


@pytest.mark.requirement("readers.camt.counterpart")
def test_the_ids_of_the_counterpart_go_with_its_role(found: Gather, message: Text, entry: Text) -> None:
    identified = "<Id><OrgId><Othr><Id>X-1</Id></Othr><Othr><Id>DE98ZZZ09999999999</Id></Othr></OrgId></Id>"
    parties = "".join(party(role, "N", identification=identified) for role in ("Dbtr", "Cdtr"))
    details = f"<RltdPties>{parties}</RltdPties>"
    paid = found(read, message(entry(mark="DBIT", details=details))).only
    assert (paid.creditor_id, paid.debitor_id) == ("DE98ZZZ09999999999", None)
    received = found(read, message(entry(mark="CRDT", details=details))).only
    assert (received.creditor_id, received.debitor_id) == (None, "X-1")


@pytest.mark.requirement("readers.camt.counterpart")
def test_an_iban_in_the_wrong_place_is_taken_when_its_digits_check(found: Gather, message: Text, entry: Text) -> None:
    account = "<RltdPties><Cdtr><Nm>C</Nm></Cdtr><CdtrAcct><Id><Othr><Id>{}</Id></Othr></Id></CdtrAcct></RltdPties>"
    for written, iban in ((OTHER, OTHER), ("DE02120300000000202052", None), ("4711", None)):
        assert found(read, message(entry(details=account.format(written)))).only.counterpart_iban == iban


@pytest.mark.requirement("readers.camt.batch")
def test_a_whole_batch_to_one_payee_keeps_the_payee(found: Gather, message: Text, entry: Text) -> None:
    same = detail("1.00", "A") + detail("2.00", "A")
    assert found(read, message(entry("12.34", more=BATCH.format(same)))).only.counterpart_name == "A"


@pytest.mark.requirement("readers.camt.accounts")
@pytest.mark.parametrize(
    ("account", "key", "currency"),
    [
        ("<Id><PrtryAcct><Id>SE12 34</Id></PrtryAcct></Id>", "SE1234", "EUR"),
        ("<Id/><Nm>Till</Nm>", "Till", "EUR"),
        ("", "unnamed", "EUR"),
        ("<Id><IBAN>CH9300762011623852957</IBAN></Id>", "CH9300762011623852957", "EUR"),
    ],
)
def test_accounts_without_an_iban_or_a_currency(
    account: str, key: str, currency: str, found: Gather, message: Text, entry: Text
) -> None:
    (record,) = found(read, message(entry(), account=account)).accounts
    assert (record.stable_key, record.currency) == (key, currency)


@pytest.mark.requirement("readers.camt.accounts")
def test_without_any_amount_the_currency_is_the_country_s(found: Gather, message: Text) -> None:
    (record,) = found(read, message(account="<Id><IBAN>CH9300762011623852957</IBAN></Id>")).accounts
    assert record.currency == "CHF"


@pytest.mark.requirement("readers.camt.balances")
def test_of_several_balances_the_earliest_opens_and_the_latest_closes_in_the_account_s_currency(
    found: Gather, message: Text, entry: Text, balance: Text
) -> None:
    balances = (
        balance("OPBD", "7", "2026-01-01", currency="USD")
        + balance("OPBD", "2", "2026-01-30")
        + balance("OPBD", "1", "2026-01-29")
        + balance("CLBD", "4", "2026-01-30")
    )
    text = message(entry(), balances=balances, after=balance("CLBD", "3", "2026-01-29"))
    (statement,) = found(read, text).statements
    assert (statement.opening, statement.closing) == (1, 4)


@pytest.mark.requirement("readers.refusal")
def test_an_entry_without_any_day_is_refused(found: Gather, message: Text, entry: Text) -> None:
    with pytest.raises(MalformedFile, match="entry 1: has no date"):
        found(read, message(entry(dates=""), header="<CreDtTm>today</CreDtTm>"))


@pytest.mark.requirement("readers.refusal")
def test_entries_belong_into_a_statement(found: Gather, message: Text, entry: Text) -> None:
    outside = message().replace("<Stmt>", f"{entry()}<Stmt>")
    with pytest.raises(MalformedFile, match="entry 1: stands outside a statement"):
        found(read, outside)
    nested = message(entry() + f"<Other>{entry()}</Other>")
    with pytest.raises(MalformedFile, match="entry 2: stands outside its statement"):
        found(read, nested)


@pytest.mark.requirement("readers.refusal")
def test_a_balance_that_is_no_number_is_refused(found: Gather, message: Text, balance: Text) -> None:
    with pytest.raises(MalformedFile, match="a balance: its amount is not a number"):
        found(read, message(balances=balance("CLBD", "12x")))


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize(("count", "is_read"), [(10_000, True), (10_001, False)])
def test_the_balances_of_a_statement_are_limited(
    count: int, is_read: bool, found: Gather, message: Text, balance: Text
) -> None:
    text = message(balances=balance("CLBD", "1") * count)
    if is_read:
        assert found(read, text).statements[0].closing == 1
    else:
        with pytest.raises(LimitExceeded, match="10000 balances"):
            found(read, text)


@pytest.mark.requirement("security.limits")
def test_the_entries_of_a_file_are_limited(
    monkeypatch: pytest.MonkeyPatch, found: Gather, message: Text, entry: Text
) -> None:
    monkeypatch.setattr("connectors.camt.ENTRIES_MAX", 2)
    assert len(found(read, message(entry() * 2)).transactions) == 2
    with pytest.raises(LimitExceeded, match="more than 2 bookings"):
        found(read, message(entry() * 3))


@pytest.mark.requirement("security.xml")
def test_a_doctype_far_into_the_file_is_refused_too(found: Gather, message: Text, entry: Text) -> None:
    text = message(entry()).replace("<Document", f"<!--{' ' * 100_000}--><!DOCTYPE Document><Document", 1)
    with pytest.raises(UnsupportedFile, match="DOCTYPE"):
        found(read, text)


@pytest.mark.requirement("readers.camt")
def test_thousands_of_entries_are_each_read_once(found: Gather, message: Text, entry: Text, balance: Text) -> None:
    text = message("".join(entry(f"{n}", "CRDT") for n in range(1, 5001)), after=balance("CLBD", "9"))
    result = found(read, text)
    assert [row.amount for row in result.transactions] == list(range(1, 5001))
    assert result.statements[0].closing == 9


@pytest.mark.requirement("security.limits")
def test_the_statements_of_a_message_are_limited(
    monkeypatch: pytest.MonkeyPatch, found: Gather, message: Text, entry: Text
) -> None:
    monkeypatch.setattr("connectors.camt.STATEMENTS_MAX", 2)
    second = f"</Stmt><Stmt><Acct><Id><IBAN>{OTHER}</IBAN></Id></Acct>{entry()}"
    assert len(found(read, message(entry(), after=second)).statements) == 2
    with pytest.raises(LimitExceeded, match="more than 2 statements"):
        found(read, message(entry(), after=second * 2))


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize(("characters", "is_read"), [(400, True), (401, False)])
def test_a_namespace_that_is_spelled_out_at_every_element_is_limited(
    characters: int, is_read: bool, found: Gather, message: Text, entry: Text
) -> None:
    namespace = "u" * (characters - len("{}x"))
    text = message(entry(more=f'<p:x xmlns:p="{namespace}">1</p:x>'))
    if is_read:
        assert found(read, text).only.amount == Decimal("-12.34")
    else:
        with pytest.raises(LimitExceeded, match="more than 400 characters"):
            found(read, text)


@pytest.mark.requirement("readers.camt.batch")
@pytest.mark.parametrize("count", [3, 300])
def test_the_details_of_a_batch_are_told_apart_however_many_there_are(
    count: int, found: Gather, message: Text, entry: Text
) -> None:
    details = "</TxDtls><TxDtls>".join(
        f'<Refs><EndToEndId>E-{n}</EndToEndId></Refs><Amt Ccy="EUR">{n}</Amt><RmtInf><Ustrd>A{n}</Ustrd>'
        f"<Ustrd/><Ustrd>B{n}</Ustrd></RmtInf>"
        for n in range(1, count + 1)
    )
    rows = found(read, message(entry(f"{count * (count + 1) // 2}", "CRDT", details=details))).transactions
    assert [(row.amount, row.end_to_end_id, row.purpose) for row in rows] == [
        (Decimal(n), f"E-{n}", f"A{n} B{n}") for n in range(1, count + 1)
    ]
