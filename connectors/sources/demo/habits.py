"""The habits of the demo households: what people do month by month, most of it as `habits.toml` has it by topic."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from connectors.sources.demo import bookings, cards, rhythms
from connectors.sources.demo.bookings import Habit, Party, direct_debit, transfer_in, transfer_out
from connectors.sources.demo.cards import Shop
from connectors.sources.demo.ledger import Account, Ledger
from connectors.sources.demo.rhythms import ANCHOR, Price, monthly, working_day


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("connectors.sources.demo").joinpath("habits.toml").read_text("utf-8"))


def shops(name: str) -> Sequence[Shop]:
    """The demo shops of this name, one or several of a kind, as `habits.toml` has them."""
    return [
        Shop(text=text, announced=announced, low=low, high=high, mcc=mcc)
        for text, announced, low, high, mcc in _table()["shops"][name]
    ]


@cache
def party(name: str) -> Party:
    """The demo counterpart of this name, as `habits.toml` has it: a person, an authority, or else a company that
    collects."""
    table = _table()
    if name in table["people"]:
        return bookings.person(*table["people"][name])
    if name in table["authorities"]:
        return bookings.authority(table["authorities"][name])
    return bookings.collector(table["collectors"][name])


def of(topic: str) -> tuple[Habit, ...]:
    """The demo habits of a topic, as `habits.toml` has them."""
    return tuple(_habit(name, facts) for name, facts in _table()[topic].items())


def _habit(name: str, facts: Mapping[str, Any]) -> Habit:
    (rhythm, place), (what, said) = facts.items()
    deed: Callable[..., bookings.What] = getattr(cards, what, None) or getattr(bookings, what)
    readers: Mapping[str, Callable[[Any], object]] = {"party": party, "shops": shops, "price": _price}
    arguments = {key: readers[key](value) if key in readers else value for key, value in said.items()}
    return Habit(name, getattr(rhythms, rhythm)(*place), deed(**arguments))


def _price(said: Mapping[str, Any]) -> Price:
    ((kind, figures),) = said.items()
    price: Price = getattr(rhythms, kind)(*figures)
    return price


def income(salary: Price) -> tuple[Habit, ...]:
    """The demo habit of a salary, on the 27th of each month or the next working day."""
    wording = "LOHN / GEHALT {day:%m/%Y} PERS.NR. 1204"
    pay = transfer_in(party("EMPLOYER"), salary, wording, code="SALA", reference="GEHALT{day:%Y%m}")
    return (Habit("salary", monthly(27), pay),)


def home(rent: Price) -> tuple[Habit, ...]:
    """The demo habits of a flat: rent on the first of the month or the next working day, and its other costs."""
    order = transfer_out(party("LANDLORD"), rent, "Miete Wohnung 12, Ahornweg 7", standing=True)
    return (Habit("rent", monthly(1), order), *of("home"))


def own_transfer(
    name: str, *, sender: Party, receiver: Party, price: Price, day: int, wording: str, days_later: int
) -> tuple[Habit, Habit]:
    """The demo habits of a standing order between own accounts, on the `day` of each month: the sender's leg and the
    receiver's, which is booked `days_later` working days after it."""
    return (
        Habit(f"{name} out", monthly(day), transfer_out(receiver, price, wording, standing=True)),
        Habit(f"{name} in", monthly(day), transfer_in(sender, price, wording, days_later=days_later)),
    )


def open_debt(card: Account) -> Decimal:
    """The balance of a demo card before 2024, zero or negative: its last month of 2023, which the first settlement
    pays."""
    last = ANCHOR - timedelta(days=1)
    return sum((row.amount for row in Ledger(card).bookings(last.replace(day=1), last)), Decimal("0.00"))


def settlement(card: Account, payer: Party) -> tuple[Habit, Habit]:
    """The demo habits that pay the card's total of the last month on the sixth or the next working day: collected from
    the payer, credited to the card on the same day."""
    ledger = Ledger(card)
    wording = "Kreditkartenabrechnung {day:%m/%Y}"

    def total(day: date) -> Decimal:
        last = working_day(day).replace(day=1) - timedelta(days=1)
        spent = -sum((row.amount for row in ledger.bookings(last.replace(day=1), last)), Decimal("0.00"))
        assert spent > 0  # something is booked every month: the restaurant habit alone brings ten rows
        return spent

    collects = Party(name=card.bank.name, iban=payer.iban)
    return (
        Habit("settlement", monthly(6), direct_debit(collects, total, wording)),
        Habit("settlement", monthly(6), transfer_in(payer, total, wording)),
    )
