"""camt files that are damaged, hostile or endless: refused whole, early, and in one sentence."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from connectors.camt.reader import detect, read
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile

Text = Callable[..., str]
Gather = Callable[..., Any]

OTHER = "DE02120300000000202051"


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
    monkeypatch.setattr("connectors.camt.reader.ENTRIES_MAX", 2)
    assert len(found(read, message(entry() * 2)).transactions) == 2
    with pytest.raises(LimitExceeded, match="more than 2 transactions"):
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
    monkeypatch.setattr("connectors.camt.reader.STATEMENTS_MAX", 2)
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
