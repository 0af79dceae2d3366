"""What the demo users' histories must hold (issue 2, item 7), listed by hand."""

from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
import schwifty

from analytics.records import AccountRecord, StatementRecord, TransactionRecord

Rows = Callable[..., list[TransactionRecord]]
History = Callable[..., dict[str, list[TransactionRecord]]]
Blocks = Callable[..., list[tuple[AccountRecord, Sequence[TransactionRecord], StatementRecord]]]


def paid_to(rows: Sequence[TransactionRecord], name: str) -> list[TransactionRecord]:
    """The rows with a counterpart of this name, oldest first."""
    return [row for row in rows if row.counterpart_name == name]


@pytest.mark.requirement("demo.users")
def test_the_five_users_have_the_accounts_the_issue_names(blocks: Blocks) -> None:
    accounts = {
        user: [(account.kind, account.name, account.currency, account.bank_name) for account, _, _ in blocks(user)]
        for user in ("demo", "solo", "empty", "lapsed", "globe")
    }
    assert accounts["demo"] == [
        ("checking", "Girokonto", "EUR", "Musterbank"),
        ("savings", "Tagesgeld", "EUR", "Musterbank"),
        ("checking", None, "EUR", "Beispiel Direktbank"),
        ("credit_card", "Visa Karte", "EUR", "Beispiel Direktbank"),
    ]
    assert [len(accounts[user]) for user in ("solo", "empty", "lapsed")] == [1, 0, 1]
    assert [(kind, currency) for kind, _, currency, _ in accounts["globe"]] == [
        ("checking", "EUR"),
        ("checking", "USD"),
        ("checking", "GBP"),
        ("savings", "CHF"),
        ("loan", "EUR"),
        ("membership", "EUR"),
    ]


@pytest.mark.requirement("demo.users")
def test_globe_owes_on_its_loan_has_an_account_without_balance_and_announced_rows(blocks: Blocks) -> None:
    found = {account.kind: (rows, statement) for account, rows, statement in blocks("globe")}
    closing = found["loan"][1].closing
    assert closing is not None
    assert closing < 0
    assert found["membership"][1].closing is None
    assert any(row.status == "pending" for _, rows, _ in blocks("globe") for row in rows)
    assert all(statement.is_pending_complete for _, _, statement in blocks("globe"))


@pytest.mark.requirement("demo.identifiers")
@pytest.mark.parametrize("user", ["demo", "solo", "lapsed", "globe"])
def test_account_numbers_and_creditor_ids_have_right_check_digits_and_belong_to_nobody(
    user: str, blocks: Blocks
) -> None:
    own = {account.iban for account, _, _ in blocks(user) if account.iban}
    others = {row.counterpart_iban for _, rows, _ in blocks(user) for row in rows if row.counterpart_iban}
    assert own
    for text in own | others:
        number = schwifty.IBAN(text)  # raises for a wrong length, shape or check digit
        assert number.bank_code.startswith("999")  # German bank codes begin with 1 to 8
        assert number.bank is None
    creditors = {row.creditor_id for _, rows, _ in blocks(user) for row in rows if row.creditor_id}
    for creditor in creditors:
        assert int("".join(str(int(character, 36)) for character in creditor[7:] + creditor[:4])) % 97 == 1


@pytest.mark.requirement("demo.subscriptions")
@pytest.mark.parametrize(
    ("name", "shortest", "longest"),
    [
        ("Ökokiste Schönegge GmbH", 6, 8),
        ("Blume2000 SE", 12, 16),
        ("Netflix International B.V.", 28, 34),
        ("HUK-COBURG Allgemeine Versicherung AG", 88, 95),
        ("Dropbox International Unlimited Company", 363, 368),
    ],
)
def test_subscriptions_of_all_five_rhythms_get_dearer(name: str, shortest: int, longest: int, all_rows: Rows) -> None:
    charges = paid_to(all_rows(), name)
    gaps = [(later.booking_date - row.booking_date).days for row, later in pairwise(charges)]
    assert gaps
    assert shortest <= min(gaps) <= max(gaps) <= longest
    assert len({row.amount for row in charges}) >= 2
    assert charges[-1].amount < charges[0].amount
    assert all(row.mandate_reference and row.creditor_id for row in charges)


@pytest.mark.requirement("demo.subscriptions")
def test_the_gym_pauses_every_august(all_rows: Rows) -> None:
    beats = {(row.booking_date.year, row.booking_date.month) for row in paid_to(all_rows(), "McFit Fitness GmbH")}
    assert {(2025, 7), (2025, 9)} <= beats
    assert (2025, 8) not in beats


@pytest.mark.requirement("demo.content")
def test_a_reversal_takes_back_a_card_payment_and_a_returned_debit_comes_back_whole(all_rows: Rows) -> None:
    rows = all_rows()
    for taken_back in (row for row in rows if row.is_reversal or row.is_return):
        assert taken_back.amount > 0
        origin = [
            row
            for row in rows
            if row.amount == -taken_back.amount
            and row.counterpart_name == taken_back.counterpart_name
            and timedelta(0) < taken_back.booking_date - row.booking_date <= timedelta(days=6)
        ]
        assert origin
    assert sum(row.is_reversal for row in rows) >= 4
    assert sum(row.is_return for row in rows) >= 4


@pytest.mark.requirement("demo.content")
def test_the_family_fund_that_pays_child_benefit_says_its_number_as_debtor(all_rows: Rows) -> None:
    rows = all_rows()
    numbers = {row.debitor_id for row in rows if row.counterpart_name == "Familienkasse der Bundesagentur für Arbeit"}
    assert len(numbers) == 1
    assert None not in numbers
    assert all(row.amount > 0 and row.creditor_id is None for row in rows if row.debitor_id is not None)


@pytest.mark.requirement("demo.content")
def test_identical_purchases_of_one_day_are_two_rows_without_an_id(all_rows: Rows) -> None:
    twins = [row for row, count in Counter(row for row in all_rows() if not row.provider_id).items() if count == 2]
    assert len(twins) >= 20
    assert all(row.counterpart_name == "BÄCKEREI MÜLLER//Koeln/DE" for row in twins)


@pytest.mark.requirement("demo.content")
def test_ids_of_the_bank_are_unique_within_an_account(history: History) -> None:
    for rows in history("demo").values():
        ids = [row.provider_id for row in rows if row.provider_id]
        assert len(ids) == len(set(ids))
        assert all(len(id_) == 16 for id_ in ids)


@pytest.mark.requirement("demo.content")
def test_own_transfers_have_both_legs_some_of_them_on_different_days(history: History, blocks: Blocks) -> None:
    accounts = history("demo")
    ibans = {account.name or f"unnamed {account.kind}": account.iban for account, _, _ in blocks("demo")}
    days_between: list[int] = []
    for receiver in ("Tagesgeld", "unnamed checking"):
        sent = [row for row in accounts["Girokonto"] if row.counterpart_iban == ibans[receiver]]
        received = [row for row in accounts[receiver] if row.counterpart_iban == ibans["Girokonto"]]
        assert [row.amount for row in sent][: len(received)] == [-row.amount for row in received]
        days_between += [
            (there.booking_date - here.booking_date).days for here, there in zip(sent, received, strict=False)
        ]
    assert set(days_between) >= {0, 1, 3}
    assert max(days_between) <= 4


@pytest.mark.requirement("demo.content")
def test_the_card_is_settled_with_last_months_total_on_both_sides(history: History) -> None:
    accounts = history("demo")
    credited = [row for row in accounts["Visa Karte"] if (row.purpose or "").startswith("Kreditkartenabrechnung")]
    debited = [row for row in accounts["unnamed checking"] if (row.purpose or "").startswith("Kreditkartenabrechnung")]
    assert [row.amount for row in credited] == [-row.amount for row in debited]
    october = [
        row.amount
        for row in accounts["Visa Karte"]
        if (row.booking_date.year, row.booking_date.month) == (2026, 10) and row not in credited
    ]
    assert credited[-1].amount == -sum(october, Decimal(0))


@pytest.mark.requirement("demo.content")
@pytest.mark.parametrize("mark", ["%", "_", "'", "&", "ü", "ö", "Ö"])
def test_texts_hold_umlauts_and_the_characters_that_searches_trip_over(mark: str, all_rows: Rows) -> None:
    assert any(mark in f"{row.counterpart_name} {row.purpose}" for row in all_rows())


@pytest.mark.requirement("demo.content")
def test_one_account_spends_nothing(history: History) -> None:
    assert all(row.amount > 0 for row in history("demo")["Tagesgeld"])


@pytest.mark.requirement("demo.content")
def test_there_are_bookings_on_first_and_last_days_of_months(all_rows: Rows) -> None:
    days = {row.booking_date for row in all_rows() if row.booking_date >= date(2026, 1, 1)}
    assert {day.month for day in days if day.day == 1} >= {4, 6, 7, 9, 10}
    assert {day.month for day in days if day.day == monthrange(day.year, day.month)[1]} == set(range(1, 11))


@pytest.mark.requirement("demo.content")
def test_some_value_dates_differ_from_their_booking_dates(history: History) -> None:
    for account in ("Girokonto", "Visa Karte"):
        assert any(row.value_date != row.booking_date for row in history("demo")[account])


@pytest.mark.requirement("demo.content")
def test_a_foreign_card_payment_says_what_was_paid_in_which_currency(all_rows: Rows) -> None:
    foreign = [row for row in all_rows() if row.original_currency]
    assert len(foreign) >= 8
    for row in foreign:
        assert (row.currency, row.original_currency, row.mcc) == ("EUR", "GBP", "5942")
        assert row.original_amount is not None
        assert 0 < row.original_amount < -row.amount


@pytest.mark.requirement("demo.content")
def test_refunds_come_from_a_shop_that_was_paid_before(all_rows: Rows) -> None:
    refunds = [row for row in all_rows() if row.bank_transaction_code == "PMNT-CCRD-RIMB" and row.mcc]
    assert len(refunds) >= 4
    for refund in refunds:
        assert any(
            row.counterpart_name == refund.counterpart_name and row.amount < -refund.amount for row in all_rows()
        )


@pytest.mark.requirement("demo.content")
@pytest.mark.parametrize(
    ("code", "count_at_least"),
    [
        ("PMNT-RDDT-ESDD", 300),  # direct debit
        ("PMNT-ICDT-ESCT", 20),  # transfer
        ("PMNT-ICDT-STDO", 60),  # standing order
        ("PMNT-CNTR-CWDL", 15),  # cash withdrawal
        ("PMNT-CNTR-CDPT", 4),  # cash deposit
        ("PMNT-CCRD-POSD", 150),  # debit card
        ("PMNT-CCRD-POSC", 200),  # credit card
        ("ACMT-MCOP-INTR", 8),  # interest
        ("ACMT-MDOP-CHRG", 30),  # fee
        ("PMNT-RCDT-SALA", 30),  # salary
        (None, 8),  # nothing that says what it is
    ],
)
def test_every_kind_of_booking_occurs(code: str | None, count_at_least: int, all_rows: Rows) -> None:
    assert sum(row.bank_transaction_code == code for row in all_rows()) >= count_at_least


@pytest.mark.requirement("demo.content")
def test_rows_that_say_nothing_of_themselves_carry_a_number_only(all_rows: Rows) -> None:
    for row in (row for row in all_rows() if row.bank_transaction_code is None):
        assert (row.counterpart_name, row.counterpart_iban, row.gvc, row.bank_text) == (None, None, None, None)
        assert (row.provider_id, row.mcc, row.purpose_code, row.mandate_reference) == (None, None, None, None)
