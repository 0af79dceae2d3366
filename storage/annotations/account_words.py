"""Export and import of what a user has said of accounts (name, credit line, that it is hidden, balances) and of
recurring payments (confirmed, dismissed, added by hand), as further lines beside those of `portable`.

A line needs its account, or the booking that was the last charge; where these are not there yet, it is counted and left
out, and may be imported again later.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

from msgspec import Struct, field

from analytics.minor_digits import in_digits
from analytics.recurring.added import AddedPayment, id_of, is_name
from analytics.recurring.confirmations import Decision
from analytics.recurring.directions import INCOMING, OUTGOING
from analytics.recurring.frequencies import SAID_AS
from analytics.recurring.payment import CONFIRMED, DISMISSED
from storage import accounts
from storage.accounts import StoredAccount
from storage.annotations import anchors, word_lines
from storage.annotations.anchors import Anchor
from storage.annotations.named_accounts import NamedAccounts
from storage.annotations.word_lines import ALL, CANNOT_BE_READ, Json, SeenWords
from storage.database import Session, Transaction
from storage.importing import contributions, same_accounts
from storage.notices import looks
from storage.recurring import added, decisions

FIRST_YEAR = 1900  # of balances

Owned = Mapping[str, StoredAccount]


class Taken(Struct):
    """What the lines of an import came to: how many were taken over (`count`), and how many are of accounts or bookings
    that are not there (`absent`). `balances` are what the user said that accounts, by their ids, held at the end of
    days of which nothing is said here; keeping them is left to the caller, because it is an import."""

    count: int = 0
    absent: int = 0
    balances: dict[str, dict[date, Decimal]] = field(default_factory=lambda: defaultdict(dict))


def lines(session: Session, user_id: str, seen: SeenWords = ALL) -> Iterator[str]:
    """The lines of an export that may be `seen`."""
    named = NamedAccounts(session, user_id)
    owned = {id_: each for id_, each in named.owned.items() if seen.account(id_)}
    for kind, entries in (
        ("account", _of_accounts),
        ("balance", _of_balances),
        ("recurring", _of_decisions),
        ("addedRecurring", _of_added),
    ):
        if kind in seen.kinds:
            yield from (word_lines.write(kind, entry) for entry in entries(session, user_id, owned, named))


def _of_accounts(session: Session, user_id: str, owned: Owned, named: NamedAccounts) -> Iterator[Json]:
    given = accounts.given(session, user_id)
    for id_, account in owned.items():
        name, line = given[id_]
        said = {
            "name": name,
            "creditLine": None if line is None else f"{line:f}",
            "isHidden": (account.is_hidden and account.same_as is None) or None,
        }
        if any(value is not None for value in said.values()):
            members = {name: value for name, value in said.items() if value is not None}
            yield {"account": named.members(id_), **members}


def _of_balances(session: Session, user_id: str, owned: Owned, named: NamedAccounts) -> Iterator[Json]:
    for id_, balances in contributions.said_balances(session, user_id).items():
        for day, amount in balances.items() if id_ in owned else ():
            yield {"account": named.members(id_), "date": day.isoformat(), "amount": f"{amount:f}"}


def _of_decisions(session: Session, user_id: str, owned: Owned, named: NamedAccounts) -> Iterator[Json]:
    decided = decisions.decided(session, user_id)
    charges = anchors.of_bookings(session, user_id, [decision.transaction_id for decision, _ in decided])
    for decision, at in decided:
        charge = charges.get(decision.transaction_id)
        if charge is not None and charge.account_id in owned:
            said = {"id": decision.id, "confirmation": decision.confirmation, "at": at.isoformat()}
            yield {**said, "account": named.members(charge.account_id), **word_lines.booking_members(charge)}


def _of_added(session: Session, user_id: str, owned: Owned, named: NamedAccounts) -> Iterator[Json]:
    for each in (each for each in added.of_user(session, user_id) if each.account_id in owned):
        yield {
            "account": named.members(each.account_id),
            "name": each.name,
            "amount": f"{each.amount:f}",
            "direction": each.direction,
            "frequency": each.frequency,
            "nextDay": each.next_day.isoformat(),
        }


def read(session: Transaction, user_id: str, text: str, *, now: datetime) -> Taken:
    """Take over from the lines of an export what the user has not said here of accounts and recurring payments. Holds
    the user. Raises InvalidWords."""
    session.hold(user_id)
    taking = _Taking(session, user_id, now)
    readers: Mapping[str, Callable[[Json], None]] = {
        "account": taking.account,
        "balance": taking.balance,
        "recurring": taking.decision,
        "addedRecurring": taking.added,
    }
    for number, kind, entry in word_lines.parse(text):
        if kind in readers:
            try:
                readers[kind](entry)
            except CANNOT_BE_READ as error:
                raise word_lines.invalid(number, error) from error
    taking.decide()
    return taking.taken


class _Taking:
    """The state of one import of lines, with a method for each kind."""

    def __init__(self, session: Transaction, user_id: str, now: datetime) -> None:
        self.session, self.user_id, self.now = session, user_id, now
        self.taken = Taken()
        self._named = NamedAccounts(session, user_id)
        self._given = accounts.given(session, user_id)
        self._said = contributions.said_balances(session, user_id)
        self._decided: list[tuple[Decision, datetime, Anchor]] = []

    def _account(self, entry: Json) -> StoredAccount | None:
        """The account that a line is about; None, and counted, where it is not there."""
        account = self._named.owned.get(self._named.find(entry["account"]) or "")
        self.taken.absent += account is None
        return account

    def account(self, entry: Json) -> None:
        name, line = entry.get("name"), entry.get("creditLine")
        amount = None if line is None else word_lines.money(line)
        account = self._account(entry)
        if name is not None and not accounts.is_name(name):
            raise ValueError("not a name")
        if account is None:
            return
        if amount is not None and not accounts.is_credit_line(amount, account.currency):
            raise ValueError("not a credit line")
        named, lined = self._given[account.id]
        if name is not None and named is None:
            accounts.rename(self.session, user_id=self.user_id, account_id=account.id, name=name)
            self.taken.count += 1
        if amount is not None and lined is None:
            accounts.set_credit_line(self.session, user_id=self.user_id, account_id=account.id, amount=amount)
            looks.look_by(self.session, self.user_id, self.now.date())
            self.taken.count += 1
        if entry.get("isHidden") is True and not account.is_hidden:
            same_accounts.hide(self.session, user_id=self.user_id, account_id=account.id, is_hidden=True, now=self.now)
            self.taken.count += 1

    def balance(self, entry: Json) -> None:
        day, amount = date.fromisoformat(entry["date"]), word_lines.money(entry["amount"])
        account = self._account(entry)
        if day.year < FIRST_YEAR or day > self.now.date():
            raise ValueError("not a day until today")
        if account is not None and day not in self._said.get(account.id, {}):
            if amount != in_digits(amount, account.currency):
                raise ValueError("not a balance")
            self.taken.balances[account.id][day] = amount

    def decision(self, entry: Json) -> None:
        charge = word_lines.booking(entry, self._named.find(entry["account"]) or "")
        decision = Decision(id=str(entry["id"]), transaction_id="", confirmation=entry["confirmation"])
        if decision.confirmation not in (CONFIRMED, DISMISSED):
            raise ValueError("not a confirmation")
        self._decided.append((decision, min(word_lines.moment(entry["at"]), self.now), charge))

    def decide(self) -> None:
        """Store the decisions that were read, each about the payment that has the charge it names."""
        charges = anchors.find(self.session, self.user_id, [charge for *_, charge in self._decided])
        here = decisions.of_user(self.session, self.user_id)
        known = {each.id for each in here} | {each.transaction_id for each in here}
        for (decision, at, _), charge in zip(self._decided, charges, strict=True):
            if charge is None:
                self.taken.absent += 1
            elif known.isdisjoint((decision.id, charge)):
                about = Decision(id=decision.id, transaction_id=charge, confirmation=decision.confirmation)
                decisions.keep(self.session, self.user_id, about, now=at)
                self.taken.count += 1

    def added(self, entry: Json) -> None:
        name, amount, day = entry["name"], word_lines.money(entry["amount"]), date.fromisoformat(entry["nextDay"])
        direction, frequency = entry["direction"], entry["frequency"]
        if direction not in (INCOMING, OUTGOING) or frequency not in SAID_AS.values() or not is_name(name):
            raise ValueError("not a recurring payment")
        account = self._account(entry)
        if account is None:
            return
        if amount <= 0 or amount != in_digits(amount, account.currency):
            raise ValueError("not an amount of a recurring payment")
        payment = AddedPayment(
            id=id_of(self.user_id, account.id, name, direction, frequency),
            account_id=account.id,
            name=name,
            amount=amount,
            direction=direction,
            frequency=frequency,
            next_day=day,
        )
        if payment.id not in {each.id for each in added.of_user(self.session, self.user_id)}:
            added.keep(self.session, self.user_id, payment)
            self.taken.count += 1
