"""Pairing of own transfers: by IBAN, one to one, and by amount where nothing speaks against it."""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.frames import LEGS, OWN_ACCOUNTS
from analytics.transfers import BY_AMOUNT, BY_EXCHANGE, BY_IBAN, BY_OTHER_LEG, BY_SETTLEMENT, pair
from tests.analytics import reference
from tests.analytics.ledgers import Row, days, frame, legs, own_accounts

OWN = own_accounts("id | iban | kind\n a | DE01 | checking\n b | DE02 | savings\n c | | credit_card")


def paired(text: str, accounts: pl.DataFrame = OWN) -> list[tuple[str, str, str | None, str]]:
    """The rows of `pair`, without fees."""
    return pair(legs(text), accounts).drop("transfer_fee").rows()


@pytest.mark.requirement("decision 14")
def test_a_counterpart_iban_of_an_own_account_makes_a_transfer_before_its_other_leg_arrives() -> None:
    header = "account_id | booking_date | amount | counterpart_iban"
    leaving, arriving = "a | 2026-03-02 | -50 | DE02", "b | 2026-03-03 | 50 | DE01"
    assert paired(f"{header}\n{leaving}") == [("1", "b", None, BY_IBAN)]
    assert paired(f"{header}\n{leaving}\n{arriving}") == [("1", "b", "2", BY_IBAN), ("2", "a", "1", BY_IBAN)]


@pytest.mark.requirement("decision 14")
def test_the_leg_without_iban_is_known_by_the_other_ones() -> None:
    assert paired("""
        account_id | booking_date | amount | counterpart_iban
        a          | 2026-03-02   | -50    | de 02
        b          | 2026-03-02   | 50     |
    """) == [("1", "b", "2", BY_IBAN), ("2", "a", "1", BY_OTHER_LEG)]
    assert paired("""
        account_id | booking_date | amount | counterpart_iban
        c          | 2026-03-02   | -50    |
        b          | 2026-03-02   | 50     | DE 01
        a          | 2026-03-02   | -50    |
    """) == [("2", "a", "3", BY_IBAN), ("3", "b", "2", BY_OTHER_LEG)]


@pytest.mark.requirement("decision 14")
@pytest.mark.parametrize(("day", "is_paired"), [("05", False), ("06", True), ("14", True), ("15", False)])
def test_legs_lie_at_most_four_days_apart(day: str, *, is_paired: bool) -> None:
    by_iban = paired(f"""
        account_id | booking_date | amount | counterpart_iban
        a          | 2026-03-10   | -50    | DE02
        b          | 2026-03-{day}| 50     |
    """)
    by_amount = paired(f"""
        account_id | booking_date | amount
        a          | 2026-03-10   | -50
        b          | 2026-03-{day}| 50
    """)
    assert by_iban[0] == ("1", "b", "2" if is_paired else None, BY_IBAN)
    assert by_amount == ([("1", "b", "2", BY_AMOUNT), ("2", "a", "1", BY_AMOUNT)] if is_paired else [])


@pytest.mark.requirement("decision 14")
def test_equal_transfers_of_one_day_pair_up_in_order() -> None:
    assert paired("""
        id | account_id | booking_date | amount | counterpart_iban
        1  | a          | 2026-03-02   | -50    | DE02
        2  | a          | 2026-03-02   | -50    | DE02
        3  | a          | 2026-03-02   | -50    | DE02
        8  | b          | 2026-03-02   | 50     |
        9  | b          | 2026-03-02   | 50     |
    """) == [
        ("1", "b", "8", BY_IBAN),
        ("2", "b", "9", BY_IBAN),
        ("3", "b", None, BY_IBAN),
        ("8", "a", "1", BY_OTHER_LEG),
        ("9", "a", "2", BY_OTHER_LEG),
    ]


@pytest.mark.requirement("decision 14")
def test_the_nearest_day_wins_and_of_two_the_later() -> None:
    assert paired("""
        id | account_id | booking_date | amount | counterpart_iban
        1  | a          | 2026-03-02   | -50    | DE02
        2  | a          | 2026-03-05   | -50    | DE02
        3  | b          | 2026-03-04   | 50     |
        4  | b          | 2026-03-06   | 50     |
    """)[:2] == [("1", "b", "3", BY_IBAN), ("2", "b", "4", BY_IBAN)]


@pytest.mark.requirement("decision 14")
def test_opposite_amounts_pair_only_where_there_is_no_choice() -> None:
    two_arrivals = """
        account_id | booking_date | amount
        a          | 2026-03-02   | -50
        b          | 2026-03-02   | 50
        c          | 2026-03-06   | 50
    """
    assert paired(two_arrivals) == []
    assert len(paired(two_arrivals.replace("2026-03-06", "2026-03-07"))) == 2
    two_departures = """
        account_id | booking_date | amount
        a          | 2026-03-02   | -50
        a          | 2026-03-03   | -50
        b          | 2026-03-05   | 50
    """
    assert paired(two_departures) == []


@pytest.mark.requirement("decision 14")
@pytest.mark.parametrize(
    "other",
    [
        "b | 2026-03-02 | 50    | EUR | XX99 |    ",  # paid by somebody else
        "b | 2026-03-02 | 50    | USD |      |    ",
        "b | 2026-03-02 | 50.01 | EUR |      |    ",
        "b | 2026-03-02 | -50   | EUR |      |    ",
        "a | 2026-03-02 | 50    | EUR |      |    ",  # the same account
        "b | 2026-03-02 | 50    | EUR |      | yes",  # an adjusting entry
    ],
)
def test_what_is_not_the_opposite_is_no_transfer(other: str) -> None:
    assert (
        paired(f"""
        account_id | booking_date | amount | currency | counterpart_iban | is_adjusting_entry
        a          | 2026-03-02   | -50    | EUR      |                  |
        {other}
    """)
        == []
    )


@pytest.mark.requirement("decision 14")
def test_a_row_that_names_a_foreign_iban_is_no_leg_even_of_a_row_that_names_its_account() -> None:
    assert paired("""
        account_id | booking_date | amount | counterpart_iban
        a          | 2026-03-02   | -50    | DE02
        b          | 2026-03-02   | 50     | XX99
    """) == [("1", "b", None, BY_IBAN)]


@pytest.mark.requirement("decision 14")
@pytest.mark.parametrize("kind", ["cash_withdrawal", "cash_deposit", "card_payment", "fee", "interest", "salary"])
def test_cash_cards_and_fees_are_a_leg_only_where_they_name_an_own_account(kind: str) -> None:
    silent = f"""
        account_id | booking_date | amount | counterpart_iban | type
        a          | 2026-03-02   | -50    |                  | {kind}
        b          | 2026-03-03   | 50     |                  |
    """
    assert paired(silent) == []
    assert paired(silent.replace("-50    |     ", "-50    | DE01")) == [], "its own IBAN says nothing"
    assert paired(silent.replace("50     |     ", "50     | DE01")) == [("2", "a", None, BY_IBAN)]
    assert paired(silent.replace("-50    |     ", "-50    | DE02")) == [
        ("1", "b", "2", BY_IBAN),
        ("2", "a", "1", BY_OTHER_LEG),
    ]
    assert len(paired(silent.replace(kind, "transfer"))) == 2


SETTLED = """
    account_id | booking_date | amount | counterpart_iban | detailed_category | type
    a          | 2026-03-02   | -350   | XX99             | CARD_SETTLEMENT   | direct_debit
    c          | 2026-03-04   | 350    |                  |                   |
"""


@pytest.mark.requirement("decision 149")
def test_a_settlement_under_the_card_companys_iban_is_a_transfer_to_the_own_card() -> None:
    assert paired(SETTLED) == [("1", "c", "2", BY_SETTLEMENT), ("2", "a", "1", BY_SETTLEMENT)]
    assert paired(SETTLED.replace("350    |     ", "350    | DE01")) == [
        ("1", "c", "2", BY_SETTLEMENT),
        ("2", "a", "1", BY_IBAN),
    ]
    savings = "b | 2026-03-03 | 350 | | |"
    assert len(paired(f"{SETTLED.strip()}\n{savings}")) == 2, "only the card is settled"


@pytest.mark.requirement("decision 149")
@pytest.mark.parametrize(
    ("words", "others"),
    [
        ("CARD_SETTLEMENT", "SHOPS"),  # paid to somebody else
        ("c          | 2026-03-04", "b          | 2026-03-04"),  # credited elsewhere
        ("a          |", "b          |"),  # paid from savings
        ("2026-03-04", "2026-03-07"),
        ("350    |     ", "350    | DE02"),  # the card says who paid
        ("350    |     ", "350    | XX98"),
        ("-350", "-351"),
        ("direct_debit", "direct_debit\n c | 2026-03-05 | 350 | | |"),  # two credits
    ],
)
def test_what_settles_no_own_card_for_certain_is_an_expense(words: str, others: str) -> None:
    text = SETTLED.replace(words, others)
    assert text != SETTLED
    assert "1" not in [row[0] for row in paired(text)]


def test_a_row_that_names_one_own_account_is_no_leg_of_another() -> None:
    assert paired("""
        account_id | booking_date | amount | counterpart_iban
        a          | 2026-03-02   | -50    | DE02
        c          | 2026-03-02   | 50     |
    """) == [("1", "b", None, BY_IBAN)]


def test_an_accounts_own_iban_beside_a_fee_says_nothing() -> None:
    assert paired("account_id | booking_date | amount | counterpart_iban\n a | 2026-03-02 | -1 | DE01") == []


def test_rows_without_an_amount_are_no_transfers() -> None:
    assert paired("account_id | booking_date | amount | counterpart_iban\n a | 2026-03-02 | 0 | DE02") == []


def test_ten_thousand_equal_amounts_are_judged_in_bounded_memory() -> None:
    count = 5_000
    rows: list[Row] = [
        {
            "id": f"{number:05}",
            "account_id": "ab"[number % 2],
            "booking_date": date(2026, 3, 2),
            "amount": Decimal(50 if number % 2 else -50),
            "currency": "EUR",
            "is_adjusting_entry": False,
        }
        for number in range(2 * count)
    ]
    assert pair(frame(rows, LEGS), OWN).is_empty()


@st.composite
def leg_rows(draw: st.DrawFn) -> list[Row]:
    """Many rows of few amounts on few days."""
    count = draw(st.integers(0, 24))
    return [
        {
            "id": f"{number:02}",
            "account_id": draw(st.sampled_from(["a", "b", "c"])),
            "booking_date": draw(days(date(2026, 3, 1), date(2026, 3, 9))),
            "amount": Decimal(draw(st.sampled_from([-50, 50, -50, 50, 49, 0, -9, 9]))),
            "currency": draw(st.sampled_from(["EUR", "EUR", "EUR", "USD"])),
            "counterpart_iban": draw(st.sampled_from([None, None, "DE01", "DE02", "XX99"])),
            "type": draw(st.sampled_from([None, "transfer", "transfer", "direct_debit", "cash_withdrawal", "fee"])),
            "detailed_category": draw(st.sampled_from([None, None, "CARD_SETTLEMENT"])),
            "is_adjusting_entry": draw(st.sampled_from([False] * 5 + [True])),
        }
        for number in draw(st.permutations(range(count)))
    ]


@given(leg_rows())
@pytest.mark.requirement("decision 14")
def test_pairing_agrees_with_the_reference_and_is_symmetric(rows: list[Row]) -> None:
    computed = {key: tuple(rest) for key, *rest in pair(frame(rows, LEGS), OWN).drop("transfer_fee").rows()}
    assert computed == reference.pair(rows, OWN.rows(named=True))
    for key, (account, other, _rule) in computed.items():
        if other is not None:
            assert computed[other][1] == key
            assert account == next(row["account_id"] for row in rows if row["id"] == other)


@given(leg_rows(), st.integers(0, 24))
@pytest.mark.requirement("decision 14")
def test_it_makes_no_difference_in_which_order_rows_arrived(rows: list[Row], cut: int) -> None:
    assert pair(frame(rows, LEGS), OWN).equals(pair(frame(rows[cut:] + rows[:cut], LEGS), OWN))


@pytest.mark.requirement("decision 14")
@pytest.mark.parametrize(
    ("arrives", "fee"),
    [
        ("99.50 | EUR", "0.50"),
        ("90 | EUR", "10.00"),
        ("89.99 | EUR", "none"),
        ("100.01 | EUR", "none"),
        ("95 | CHF", None),
    ],
)
def test_legs_that_name_each_other_may_differ_by_a_fee_or_in_currency(arrives: str, fee: str | None) -> None:
    rows = pair(
        legs(f"""
            account_id | booking_date | counterpart_iban | amount | currency
            a          | 2026-03-02   | DE02             | -100   | EUR
            b          | 2026-03-04   | DE01             | {arrives}
        """),
        OWN,
    )
    is_one = fee != "none"
    assert rows["transfer_id"].to_list() == (["2", "1"] if is_one else [None, None])
    assert rows["transfer_fee"].to_list() == [Decimal(fee) if is_one and fee else None, None]


@pytest.mark.requirement("decision 14")
def test_the_opposite_amount_goes_before_a_fee_and_the_largest_before_smaller_ones() -> None:
    assert pair(
        legs("""
            account_id | booking_date | counterpart_iban | amount | currency
            a          | 2026-03-02   | DE02             | -100   | EUR
            a          | 2026-03-02   | DE02             | -99    | EUR
            b          | 2026-03-02   | DE01             | 99     | EUR
            b          | 2026-03-03   | DE01             | 98     | EUR
            a          | 2026-03-10   | DE02             | -20    | EUR
            a          | 2026-03-10   | DE02             | -40    | EUR
            b          | 2026-03-10   | DE01             | 38     | USD
            b          | 2026-03-10   | DE01             | 19     | USD
        """),
        OWN,
    )["transfer_id"].to_list() == ["4", "3", "2", "1", "8", "7", "6", "5"]


@pytest.mark.requirement("decision 14")
def test_an_exchange_between_wallets_at_one_bank_is_a_transfer() -> None:
    wallets = own_accounts("id | bank_name\n a | PayPal\n b | PayPal\n c | Other")
    text = """
        account_id | booking_date | amount | currency | is_exchange
        a          | 2026-03-02   | -18.50 | EUR      | yes
        b          | 2026-03-02   |  20    | USD      | yes
        b          | 2026-03-02   | -20    | USD      | no
    """
    assert paired(text, wallets) == [("1", "b", "2", BY_EXCHANGE), ("2", "a", "1", BY_EXCHANGE)]
    for other in (
        "c          | 2026-03-02   |  20    | USD      | yes",
        "b          | 2026-03-03   |  20    | USD      | yes",
    ):
        assert (
            paired(
                text.replace("-20 ", "-21 ").replace("b          | 2026-03-02   |  20    | USD      | yes", other),
                wallets,
            )
            == []
        )
    two = text + "        a | 2026-03-02 | -9.30 | EUR | yes"
    assert paired(two, wallets) == []  # a leg is missing
    more = two + "\n        b | 2026-03-02 | 10 | USD | yes"
    assert [row[2] for row in paired(more, wallets)] == ["2", "1", "5", "4"]


@pytest.mark.requirement("decision 14")
def test_accounts_under_one_iban_exchange_without_words() -> None:
    shared = own_accounts("id | iban | bank_name\n a | DE01 | Bank\n b | DE01 | Bank")
    assert paired(
        """
        account_id | booking_date | counterpart_iban | amount | currency
        a          | 2026-03-02   | DE01             | -18.50 | EUR
        b          | 2026-03-02   | DE01             |  20    | USD
        """,
        shared,
    ) == [("1", "b", "2", BY_EXCHANGE), ("2", "a", "1", BY_EXCHANGE)]


@pytest.mark.requirement("decision 14")
def test_what_goes_from_a_former_iban_to_the_present_one_of_an_account_is_a_transfer_only_in_pairs() -> None:
    renamed = own_accounts("id | iban\n a | DE09\n a | DE01\n b | DE02")
    text = """
        account_id | booking_date | counterpart_iban | amount | type
        a          | 2026-03-02   | DE09             | -500   | transfer
        a          | 2026-03-02   | DE01             |  500   | transfer
        a          | 2026-03-09   | DE09             | -5     | transfer
        a          | 2026-03-09   |                  | 5      | transfer
        b          | 2026-03-12   | DE01             | -7     | transfer
    """
    assert paired(text, renamed) == [("1", "a", "2", BY_IBAN), ("2", "a", "1", BY_IBAN), ("5", "a", None, BY_IBAN)]


def test_no_rows_and_no_accounts_make_no_transfers() -> None:
    nothing = legs("amount")
    assert pair(nothing, OWN).is_empty()
    assert pair(nothing, frame([], OWN_ACCOUNTS)).is_empty()
