"""A wallet in several currencies, whose files name no account: where each month goes, and what an exchange is."""

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest

from handlers.commands.control_socket import CommandError
from handlers.commands.imports import import_files
from storage import accounts
from tests.imports.household import Household

Write = Callable[..., Path]

HEADER = "Datum,Uhrzeit,Name,Typ,Status,Währung,Brutto,Entgelt,Netto,Transaktionscode,Guthaben\n"
JANUARY = """
    03.01.2026 | Anna  | Allgemeine Zahlung            | EUR |  100.00 | 150.00
    10.01.2026 | Shop  | Zahlung                       | USD |  -20.00 | -20.00
    10.01.2026 |       | Allgemeine Währungsumrechnung | EUR |  -18.50 | 131.50
    10.01.2026 |       | Allgemeine Währungsumrechnung | USD |   20.00 |   0.00
    20.01.2026 | Laden | Zahlung                       | EUR |  -31.50 | 100.00
"""
FEBRUARY = """
    03.02.2026 | Anna  | Allgemeine Zahlung            | EUR |   50.00 | 150.00
    12.02.2026 | Tom   | Allgemeine Zahlung            | USD |   40.00 |  40.00
"""
MARCH = """
    03.03.2026 | Anna  | Allgemeine Zahlung            | EUR |    5.00 | 155.00
    12.03.2026 | Tom   | Zahlung                       | USD |  -10.00 |  30.00
    12.03.2026 | Kai   | Allgemeine Zahlung            | GBP |    8.00 |   8.00
"""
LATER = """
    03.05.2026 | Anna  | Allgemeine Zahlung            | EUR |    7.00 |  77.00
    12.05.2026 | Tom   | Zahlung                       | USD |   -1.00 |   3.00
"""


def paypal(table: str) -> str:
    lines = []
    for number, line in enumerate(table.strip().splitlines()):
        day, name, kind, currency, amount, balance = (cell.strip() for cell in line.split("|"))
        money = f'"{amount}","0,00","{amount}","{day}-{number}","{balance}"'.replace(".00", ",00").replace(".50", ",50")
        lines.append(f"{day},10:00:00,{name},{kind},Abgeschlossen,{currency},{money}\n")
    return HEADER + "".join(lines)


def held(eva: Household) -> dict[str, tuple[list[Decimal], Decimal | None]]:
    """What each account has by its label: the amounts and the balance."""
    rows = eva.rows("transactions")
    return {
        each.label: (
            sorted(row["amount"] for row in rows if row["account_id"] == each.id and not row["is_adjusting_entry"]),
            each.balance,
        )
        for each in accounts.every(eva.services.everybody, eva.user.id)
    }


def bring(eva: Household, *paths: Path) -> None:
    import_files(eva.services, eva, user=eva.user, files=[str(each) for each in paths])


WHOLE = {
    "PayPal / EUR": ([Decimal(each) for each in ("-31.50", "-18.50", "5", "50", "100")], Decimal(155)),
    "PayPal / USD": ([Decimal(each) for each in (-20, -10, 20, 40)], Decimal(30)),
    "PayPal / GBP": ([Decimal(8)], Decimal(8)),
}


@pytest.mark.requirement("accounts.unclear")
@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_a_month_goes_where_its_balance_goes_on_whatever_month_came_before(
    order: tuple[int, ...], eva: Household, write: Write
) -> None:
    months = [write(f"{place}.csv", paypal((JANUARY, FEBRUARY, MARCH)[place])) for place in order]
    bring(eva, *months)
    assert held(eva) == WHOLE
    assert eva.notes == []


@pytest.mark.requirement("accounts.unclear")
def test_a_month_that_goes_on_from_no_balance_is_asked_about_in_all_its_currencies(
    eva: Household, write: Write
) -> None:
    bring(eva, write("a.csv", paypal(JANUARY)))
    with pytest.raises(CommandError, match="refused"):
        bring(eva, write("b.csv", paypal(LATER)))
    assert list(held(eva)) == ["PayPal / EUR", "PayPal / USD"]
    eva.answers = [0]
    bring(eva, write("b.csv", paypal(LATER)))
    assert {name: amounts[-1] for name, (amounts, _) in held(eva).items()} == {"PayPal / EUR": 100, "PayPal / USD": 20}
    assert [len(amounts) for amounts, _ in held(eva).values()] == [4, 3]
    bring(eva, write("again.csv", paypal(LATER)))
    assert [len(amounts) for amounts, _ in held(eva).values()] == [4, 3]
    eva.answers = [1]
    bring(eva, write("c.csv", paypal(LATER.replace("77.00", "66.00").replace("05.2026", "06.2026"))))
    assert [len(amounts) for amounts, _ in held(eva).values()] == [4, 3, 1, 1]


@pytest.mark.requirement("accounts.unclear")
def test_a_balance_of_zero_proves_nothing(eva: Household, write: Write) -> None:
    bring(eva, write("a.csv", paypal("03.01.2026 | Anna | Zahlung | EUR | -50.00 | 0.00")))
    with pytest.raises(CommandError, match="refused"):
        bring(eva, write("b.csv", paypal("03.02.2026 | Anna | Zahlung | EUR | 50.00 | 50.00")))


@pytest.mark.requirement("accounts.unclear")
@pytest.mark.parametrize("rows", [JANUARY.splitlines(), JANUARY.splitlines()[::-1]], ids=["oldest", "newest"])
def test_a_circle_of_balances_on_one_day_closes_as_the_whole_file_is_ordered(
    rows: list[str], eva: Household, write: Write
) -> None:
    bring(eva, write("a.csv", paypal("\n".join(filter(str.strip, rows)))))
    assert {label: balance for label, (_, balance) in held(eva).items()} == {"PayPal / EUR": 100, "PayPal / USD": 0}


@pytest.mark.requirement("accounts.unclear")
@pytest.mark.parametrize("is_newest_first", [False, True])
def test_a_circle_of_balances_on_the_only_day_of_a_file_closes_as_its_times_are_ordered(
    is_newest_first: bool, eva: Household, write: Write
) -> None:
    day = [line.replace("10:00", f"9:3{place}") for place, line in enumerate(paypal(JANUARY).splitlines()[2:5])]
    bring(eva, write("a.csv", "\n".join([HEADER.strip(), *(day[::-1] if is_newest_first else day)])))
    balances = {name: balance for name, (_, balance) in held(eva).items()}
    assert balances == {"PayPal / EUR": Decimal("131.50"), "PayPal / USD": Decimal(0)}


@pytest.mark.requirement("decision 14")
def test_an_exchange_between_own_wallets_is_neither_income_nor_expense(eva: Household, write: Write) -> None:
    bring(eva, write("a.csv", paypal(JANUARY)))
    exchanged = [row["amount"] for row in eva.rows("transactions") if row["transfer_id"]]
    assert sorted(exchanged) == [Decimal("-18.50"), Decimal(20)]


REVOLUT = "Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance\n"
OWN = ("02 -3 97", "03 -1 96", "04 -9 87", "05 -2 85")
JOINT = ("02 -8 492", "03 -7 485", "04 -6 479", "05 -5 474")


def revolut(*rows: str) -> str:
    """A file of a product called Current: `day amount balance`, in October."""
    said = (row.split() for row in rows)
    return REVOLUT + "".join(
        f"CARD_PAYMENT,Current,2026-10-{day} 10:00:00,2026-10-{day} 10:00:00,Shop,{amount}.00,0.00,EUR,COMPLETED,"
        f"{balance}.00\n"
        for day, amount, balance in said
    )


@pytest.mark.requirement("accounts.unclear")
def test_a_product_with_other_bookings_on_the_same_days_is_another_account_of_that_name(
    eva: Household, write: Write
) -> None:
    bring(eva, write("own.csv", revolut(*OWN)))
    with pytest.raises(CommandError, match=r"1 of 1 file refused\."):
        bring(eva, write("joint.csv", revolut(*JOINT)))
    assert list(held(eva)) == ["Current"]
    eva.answers = [1]  # an account that is not there yet
    bring(eva, write("joint.csv", revolut(*JOINT)))
    for name, rows in (("later.csv", ("09 -4 470",)), ("own_later.csv", (*OWN, "09 -5 80"))):
        bring(eva, write(name, revolut(*rows)))  # each goes where its balance or its bookings are
    ledgers = {each.balance: each.id for each in accounts.every(eva.services.everybody, eva.user.id)}
    amounts = [
        {row["amount"] for row in eva.rows("transactions") if row["account_id"] == ledgers[of]}
        for of in (Decimal(80), Decimal(470))
    ]
    assert amounts == [{-9, -5, -3, -2, -1}, {-8, -7, -6, -5, -4}]


@pytest.mark.requirement("accounts.unclear")
def test_a_product_of_other_days_or_with_the_bookings_of_its_days_is_the_only_one_of_its_name(
    eva: Household, write: Write
) -> None:
    for name, rows in (("first.csv", OWN), ("gap.csv", ("20 -1 50",)), ("edge.csv", ("05 -2 85", "06 -1 84"))):
        bring(eva, write(name, revolut(*rows)))
    assert [balance for _, balance in held(eva).values()] == [Decimal(50)]
