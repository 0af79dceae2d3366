"""What an entry (Ntry) of camt.052, .053 and .054 means: sign, days, parties, batches, references, texts, codes."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.camt.reader import detect, read

Text = Callable[..., str]
Gather = Callable[..., Any]

OWN = "DE89370400440532013000"
OTHER = "DE02120300000000202051"
BATCH = "<NtryDtls>{}</NtryDtls>"


def party(role: str, name: str, iban: str = "", *, version_8: bool = True, identification: str = "") -> str:
    inner = f"<Nm>{name}</Nm>{identification}"
    account = f"<{role}Acct><Id><IBAN>{iban}</IBAN></Id></{role}Acct>" if iban else ""
    return f"<{role}>{f'<Pty>{inner}</Pty>' if version_8 else inner}</{role}>{account}"


def detail(amount: str, name: str, mark: str = "DBIT") -> str:
    return (
        f"<TxDtls><Refs><TxId>{name}</TxId></Refs><Amt Ccy='EUR'>{amount}</Amt><CdtDbtInd>{mark}</CdtDbtInd>"
        f"<RltdPties><Cdtr><Nm>{name}</Nm></Cdtr></RltdPties><RmtInf><Ustrd>for {name}</Ustrd></RmtInf></TxDtls>"
    )


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
def test_the_details_of_a_batch_without_reference_are_known_as_one_batch(
    found: Gather, message: Text, entry: Text
) -> None:
    text = message(entry("14.00", more=BATCH.format(detail("10.00", "A") + detail("4.00", "B"))))
    rows = found(read, text).transactions
    assert [row.references for row in rows] == [("batch:2x14.00/0", "txid:A"), ("batch:2x14.00/1", "txid:B")]


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


@pytest.mark.requirement("readers.camt.original_amount")
def test_an_amount_in_our_own_currency_is_not_the_one_paid_abroad(found: Gather, message: Text, entry: Text) -> None:
    amounts = '<AmtDtls><InstdAmt><Amt Ccy="EUR">12.34</Amt></InstdAmt>{}</AmtDtls>'
    abroad = '<TxAmt><Amt Ccy="USD">15.00</Amt></TxAmt>'
    same, other = amounts.format(""), amounts.format(abroad)
    for more, details, original in (
        ("", other, Decimal("15.00")),
        (other, same, Decimal("15.00")),  # the detail says nothing, the entry does
        (same, same, None),
    ):
        booking = found(read, message(entry(more=more, details=details))).only
        assert booking.original_amount == original


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


@pytest.mark.requirement("readers.camt.batch")
@pytest.mark.parametrize("count", [2, 300])
def test_a_detail_that_says_nothing_is_none(count: int, found: Gather, message: Text, entry: Text) -> None:
    details = "".join(f"<TxDtls><Amt Ccy='EUR'>{n}</Amt></TxDtls><TxDtls/>" for n in range(1, count + 1))
    text = message(entry(f"{count * (count + 1) // 2}", "CRDT", more=f"<NtryDtls>{details}</NtryDtls>"))
    assert [row.amount for row in found(read, text).transactions] == list(range(1, count + 1))


@pytest.mark.requirement("readers.camt")
@pytest.mark.parametrize("mark", ["DBIT", " DBIT\n"])
def test_blanks_around_the_indicator_do_no_harm(mark: str, found: Gather, message: Text, entry: Text) -> None:
    assert found(read, message(entry(mark=mark))).only.amount == Decimal("-12.34")


@pytest.mark.requirement("readers.camt")
@pytest.mark.parametrize("names", [["PstlAdr", "Ctry"], ["x" * 150] * 2])
def test_what_is_never_looked_up_is_passed_over_with_all_below_it(
    names: list[str], found: Gather, message: Text, entry: Text
) -> None:
    below = "".join(f"<{name}>" for name in names) + "1" + "".join(f"</{name}>" for name in reversed(names))
    assert found(read, message(entry(more=below))) == found(read, message(entry()))
