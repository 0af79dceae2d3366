"""The bookings of the demo bank in the wording of German banks: one constructor of records per kind of booking.

Each returns a `What`: a function of the day and the dice that yields movements. Codes are those of the German banks:
GVC (DK Anlage 3) and ISO 20022 bank transaction codes.
"""

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import TransactionRecord
from connectors.sources.demo.chance import Dice
from connectors.sources.demo.identifiers import creditor_id, digits, german_iban
from connectors.sources.demo.rhythms import Price, Rhythm, working_day, working_days_later

PAYEE_BANK_CODE = "99920000"  # of no bank: German bank codes begin with 1 to 8


class Movement(Struct, frozen=True, kw_only=True):
    """A made-up movement of money at the demo bank: its booking and, if it is announced before, its pending record. The
    demo bank gives the booking no id where `has_id` is false."""

    record: TransactionRecord
    pending: TransactionRecord | None = None
    has_id: bool = True


What = Callable[[date, Dice], Iterator[Movement]]


class Habit(Struct, frozen=True):
    """Something that happens on a demo account again and again."""

    name: str
    when: Rhythm
    what: What


class Party(Struct, frozen=True, kw_only=True):
    """A counterpart of the demo bank, with made-up numbers."""

    name: str
    iban: str
    bic: str | None = "BEISDEDAXXX"  # XXX: the head office (ISO 9362)
    bank_name: str | None = None
    creditor_id: str | None = None
    mandate: str | None = None
    debitor_id: str | None = None


def person(name: str, bank_name: str | None = None) -> Party:
    """A demo counterpart who is paid by transfer, with an IBAN made up from the name."""
    return Party(name=name, iban=german_iban(PAYEE_BANK_CODE, name), bank_name=bank_name)


def authority(name: str) -> Party:
    """A demo authority that pays by transfer and identifies its cash office by a number as debtor; IBAN and number are
    made up from the name."""
    return Party(name=name, iban=german_iban(PAYEE_BANK_CODE, name), debitor_id=digits(11, "debtor", name))


def collector(name: str) -> Party:
    """A demo company that collects by direct debit; its IBAN, creditor id and mandate are made up from the name."""
    return Party(
        name=name,
        iban=german_iban(PAYEE_BANK_CODE, name),
        creditor_id=creditor_id(digits(11, name)),
        mandate=f"M{digits(9, 'mandate', name)}",
    )


def direct_debit(party: Party, price: Price, purpose: str, *, code: str | None = None) -> What:
    """A function that makes demo data: a SEPA direct debit of the day's price, collected on the day or, if banks rest,
    the next working one; `code` is its SEPA purpose code."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        yield Movement(record=_debit(party, -price(day), fill_in(purpose, day, dice), day, code))

    return what


def varying_debit(party: Party, low: str, high: str, purpose: str) -> What:
    """A function that makes demo data: a direct debit with a different amount from `low` to `high` each time (shopping
    through a payment service)."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        amount = -dice.amount(low, high)
        yield Movement(record=_debit(party, amount, fill_in(purpose, day, dice), day))

    return what


def debit_return(party: Party, price: Price, purpose: str) -> What:
    """A function that makes demo data: a direct debit, and two working days after its booking a credit of the same
    amount from the same counterpart, with the codes and the flag of a return."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        debit = _debit(party, -price(day), fill_in(purpose, day, dice), day)
        yield Movement(record=debit)
        back = replace(
            debit,
            amount=-debit.amount,
            booking_date=working_days_later(debit.booking_date, 2),
            value_date=debit.booking_date,
            gvc="181",
            bank_transaction_code="PMNT-RDDT-UPDD",
            bank_text="RÜCKLASTSCHRIFT",
            purpose=f"Retoure SEPA-Lastschrift: {debit.purpose}",
            is_return=True,
        )
        yield Movement(record=back)

    return what


def transfer_out(party: Party, price: Price, purpose: str, *, standing: bool = False) -> What:
    """A function that makes demo data: a credit transfer or standing order to a counterpart, booked on the day or the
    next working one."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        record = _record(
            -price(day),
            working_day(day),
            party,
            purpose=fill_in(purpose, day, dice),
            gvc="117" if standing else "116",
            bank_transaction_code="PMNT-ICDT-STDO" if standing else "PMNT-ICDT-ESCT",
            bank_text="DAUERAUFTRAG" if standing else "ONLINE-ÜBERWEISUNG",
        )
        yield Movement(record=record)

    return what


def transfer_in(
    party: Party, price: Price, purpose: str, *, days_later: int = 0, code: str | None = None, reference: str = ""
) -> What:
    """A function that makes demo data: a credit transfer from a counterpart, booked `days_later` working days after it
    was sent; the code SALA makes it a salary."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        salary = code == "SALA"
        record = _record(
            price(day),
            working_days_later(working_day(day), days_later),
            party,
            purpose=fill_in(purpose, day, dice),
            purpose_code=code,
            end_to_end_id=fill_in(reference, day, dice) or None,
            debitor_id=party.debitor_id,
            gvc="153" if salary else "166",
            bank_transaction_code="PMNT-RCDT-SALA" if salary else "PMNT-RCDT-ESCT",
            bank_text="LOHN/GEHALT" if salary else "GUTSCHRIFT ÜBERWEISUNG",
        )
        yield Movement(record=record)

    return what


def bank_row(
    price: Price, *, purpose: str, gvc: str | None = None, iso: str | None = None, bank_text: str | None = None
) -> What:
    """A function that makes demo data: a booking by the bank itself, on the very day: cash, fees, interest; the price
    has a sign. `iso` is its bank transaction code. Without `gvc`, it gets no id."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        said = fill_in(purpose, day, dice)
        record = in_euro(price(day), day, purpose=said, gvc=gvc, bank_transaction_code=iso, bank_text=bank_text)
        yield Movement(record=record, has_id=gvc is not None)

    return what


def _debit(party: Party, amount: Decimal, purpose: str, day: date, code: str | None = None) -> TransactionRecord:
    return _record(
        amount,
        working_day(day),
        party,
        creditor_id=party.creditor_id,
        mandate_reference=party.mandate,
        end_to_end_id=f"{digits(6, party.name)}-{day:%Y%m%d}",
        purpose=purpose,
        purpose_code=code,
        gvc="105",
        bank_transaction_code="PMNT-RDDT-ESDD",
        bank_text="FOLGELASTSCHRIFT",
    )


def _record(amount: Decimal, booked: date, party: Party, **facts: str | None) -> TransactionRecord:
    """A demo booking in euro, with the facts about its counterpart and these `facts`, by field of the record."""
    return in_euro(
        amount,
        booked,
        counterpart_name=party.name,
        counterpart_iban=party.iban,
        counterpart_bic=party.bic,
        counterpart_bank_name=party.bank_name,
        **facts,
    )


def in_euro(amount: Decimal, booked: date, **facts: object) -> TransactionRecord:
    """A demo booking in euro with these facts, valued on the day it is booked unless they say otherwise."""
    facts = {"value_date": booked, **facts}
    return TransactionRecord(amount=amount, currency="EUR", booking_date=booked, **facts)  # type: ignore[arg-type]


def fill_in(text: str, day: date, dice: Dice) -> str:
    """The text with its {day}, and six random digits for its {number}."""
    return text.format(day=day, number=dice.number(6)) if "{" in text else text
