"""The sentences of notices, from their messages and arguments."""

import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from analytics.messages import Amount, Message
from handlers.integrity_sentences import MISSING, SENTENCES

NAME_LENGTH_MAX = 60
DAYS = frozenset({"day", "first", "second", "last", "until"})
AMOUNTS = frozenset({"amount", "former", "year", "missing", "elsewhere", "balance"})
UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})

TITLES: Mapping[str, str] = {
    "overdraft.ahead": "The account will run short",
    "balance.low": "The balance is low",
    "debit.new": "A first direct debit",
    "charge.double": "Perhaps charged twice",
    "price.raised": "A higher price",
    "income.late": "An income is late",
    "payment.failed": "A payment came back",
    "consent.ending": "A consent ends soon",
    "sync.failing": "A bank is not being read",
    "ledger.wrong": "An account does not add up",
    "access.new": "Something about access has changed",
    "server.backup": "There is no recent backup",
    "server.disk": "The disk is almost full",
    "account.same": "Perhaps the same account twice",
    "booking.duplicate": "Perhaps booked twice",
    "booking.unsorted": "Without a category",
}
STEPS: Mapping[str, str] = {
    "overdraft.ahead": "moveMoney",
    "charge.double": "askMerchant",
    "income.late": "ask",
    "payment.failed": "pay",
    "consent.ending": "renew",
    "sync.failing": "renew",
    "ledger.wrong": "import",
    "access.new": "end",
    "account.same": "answer",
    "booking.unsorted": "sort",
}
"""The one step of each kind; of the others it is to look."""
TEXTS: Mapping[str, str] = {
    "overdraft.ahead": (
        "{name} is due on {day}: {amount}. {missing} will be missing; your other accounts hold {elsewhere}."
    ),
    "overdraft.ahead.alone": "{name} is due on {day}: {amount}. {missing} will be missing.",
    "balance.low": "The balance of {balance} is below your limit of {amount}.",
    "debit.new.returnable": (
        "{name} collected {amount} for the first time. You can return it through your bank until {until}."
    ),
    "debit.new.perhaps": (
        "{name} collected {amount} for the first time. Unless it is a company debit, you can return it through your"
        " bank until {until}."
    ),
    "debit.new.company": "{name} collected {amount} for the first time, by company debit, which cannot be returned.",
    "debit.new.unknown": "{name} collected {amount} for the first time.",
    "charge.double": "{name} charged {amount} on {first} and again on {second}.",
    "price.raised": "{name} now costs {amount} instead of {former}. That is {year} more a year.",
    "price.raised.once": "{name} charged {amount}, more than usual. It was {former} before.",
    "income.late": "{amount} from {name} was due on {day} and has not come.",
    "payment.failed": "{amount} to {name} came back on {day}. It is still to be paid, perhaps with a fee.",
    "consent.ending": "The consent for {bank} ends on {day}. Renew the connection before.",
    "sync.failing": "Nothing has come from {bank} since {day}. Try again, or renew the connection.",
    "sync.failing.person": "Nothing comes from {bank} any more. Renew the connection.",
    "ledger.wrong.missing": MISSING,
    **{f"ledger.wrong.{kind}": SENTENCES[kind] for kind in ("gap", "statement_differs", "balance_differs")},
    "access.new.giveConsent": "{name} was given access to your data.",
    "access.new.claimSimpleFin": "{name} was connected by a setup token.",
    "access.new.makeCalendarLink": "An address of your calendar was made.",
    "access.new.addPasskey": "A passkey was added.",
    "access.new.changePassword": "Your password was changed.",
    "access.new.setPasswordByLink": "Your password was set by a link.",
    "access.new.turnOnSecondFactor": "Your second factor was turned on.",
    "access.new.turnOffSecondFactor": "Your second factor was turned off.",
    "access.new.useRecoveryCode": "One of your recovery codes was used.",
    "access.new.offerShare": "Accounts were offered to another person.",
    "access.new.getOffer": "Another person has offered you accounts. You can accept them under Share accounts.",
    "access.new.acceptShare": "A share of accounts was accepted.",
    "access.new.linkProvider": "A sign-in at the provider was linked to you.",
    "access.new.signInByLink": "Somebody signed in as you by a link.",
    "access.new.createNoticeTarget": "An address was added at which you are told of notices.",
    "access.new.deleteNoticeTarget": "An address at which you were told of notices was removed.",
    "access.new.setNoticeSettings": "You are no longer told at once when something about your access changes.",
    "server.backup": "The last backup was made on {day}.",
    "server.backup.none": "No backup was made since {day}.",
    "server.disk": "There are {size} left on the disk of the store.",
    "account.same": "Two accounts may be one. The second one counts once you have said so.",
    "booking.duplicate": "{n} transactions of the last {days} days may be there twice. They are counted.",
    "booking.duplicate.one": "One transaction of the last {days} days may be there twice. It is counted.",
    "booking.unsorted": "{n} transactions of the last {days} days have no category.",
    "booking.unsorted.one": "One transaction of the last {days} days has no category.",
}


def title_of(kind: str) -> Message:
    """The title of a notice of this kind, which names nobody and no amount."""
    return Message(TITLES[kind])


def step_of(kind: str) -> str:
    """The one step that a notice of this kind asks for, as the contract names it."""
    return STEPS.get(kind, "look")


def text_of(message: str, arguments: Mapping[str, str], *, is_narrow: bool = False) -> Message:
    """The sentence of a notice; `is_narrow`: for somebody who may not read all accounts, so that it adds up none of the
    others. Of one that a newer program has stored, it is the title of its kind."""
    shown = "overdraft.ahead.alone" if is_narrow and message == "overdraft.ahead" else message
    if shown not in TEXTS:
        return title_of(".".join(shown.split(".")[:2]))
    return Message(TEXTS[shown], **{name: _argument(name, value) for name, value in arguments.items()})


def visible_name(name: str) -> str:
    """A stranger's name as a sentence may hold it: one line of at most 60 characters that can be seen, in their
    order."""
    kept = "".join(" " if letter.isspace() else letter for letter in name if letter.isspace() or _is_seen(letter))
    line = re.sub(r"://|[<>@]", " ", kept)
    line = " ".join(line.split())
    return line if len(line) <= NAME_LENGTH_MAX else f"{line[: NAME_LENGTH_MAX - 1].rstrip()}…"


def _is_seen(letter: str) -> bool:
    return unicodedata.category(letter) not in UNSEEN


def _argument(name: str, value: str) -> Any:
    if name in DAYS:
        return date.fromisoformat(value)
    if name in AMOUNTS:
        amount, _, currency = value.partition(" ")
        return Amount.of(Decimal(amount), currency)
    return visible_name(value)
