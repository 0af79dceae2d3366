"""Card bookings: announced with one text, booked days later with another; cash machines, refunds, reversals
(Stornos)."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import TransactionRecord
from connectors.sources.demo.bookings import Movement, What, in_euro
from connectors.sources.demo.chance import Dice
from connectors.sources.demo.rhythms import working_day, working_days_later

CENT = Decimal("0.01")


class Shop(Struct, frozen=True, kw_only=True):
    """A place where demo cards are used: the text of the booking, that of the announcement, the range of amounts
    (decimal numbers), and the merchant category code. A "#" in `text` becomes a random number in credit card
    bookings."""

    text: str
    announced: str
    low: str
    high: str
    mcc: str


def debit_card(shops: Sequence[Shop], *, times: int = 1, has_id: bool = True) -> What:
    """A function that makes demo data: a debit card payment at one of the shops, announced at once, booked two working
    days later with another text; `times` equal ones. Without `has_id`, the bank gives it no id."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        shop = dice.pick(shops)
        amount = -dice.amount(shop.low, shop.high)
        record = in_euro(
            amount,
            working_days_later(day, 2),
            counterpart_name=shop.text,
            purpose=f"{day.isoformat()}T{9 + dice.below(10):02d}:{dice.below(60):02d} Debitk.1 2029-12",
            end_to_end_id=f"6{dice.number(8)}{day:%y%j}",
            gvc="106",
            bank_transaction_code="PMNT-CCRD-POSD",
            bank_text="KARTENZAHLUNG",
        )
        for _ in range(times):
            yield Movement(record=record, pending=_announcement(shop, amount, day, None), has_id=has_id)

    return what


def credit_card(shops: Sequence[Shop]) -> What:
    """A function that makes demo data: a credit card payment at one of the shops, announced for four working days; the
    booking has the MCC."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        shop = dice.pick(shops)
        amount = -dice.amount(shop.low, shop.high)
        record = _card(shop, amount, day, text=shop.text.replace("#", dice.number(7)))
        yield Movement(record=record, pending=_announcement(shop, amount, day, shop.mcc))

    return what


def foreign_card(shops: Sequence[Shop], currency: str, rate: str) -> What:
    """A function that makes demo data: a card payment at one of the shops in another currency, booked in euro; `rate`
    is euro for one unit of the currency, and varies by up to 0.02."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        shop = dice.pick(shops)
        original = -dice.amount(shop.low, shop.high)
        exchange = Decimal(rate) + Decimal(dice.below(400) - 200).scaleb(-4)
        amount = (original * exchange).quantize(CENT, ROUND_HALF_EVEN)
        record = _card(shop, amount, day, text=shop.text)
        exchanged = replace(
            record,
            purpose=f"{record.purpose} {-original} {currency} Kurs {exchange}",
            original_amount=-original,
            original_currency=currency,
        )
        yield Movement(record=exchanged, pending=_announcement(shop, amount, day, shop.mcc))

    return what


def part_refund(shops: Sequence[Shop], share: str) -> What:
    """A function that makes demo data: a card purchase at one of the shops, of which a share (0 to 1) is refunded eight
    days later, or on the next working day after that."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        shop = dice.pick(shops)
        amount = -dice.amount(shop.low, shop.high)
        text = shop.text.replace("#", dice.number(7))
        yield Movement(record=_card(shop, amount, day, text=text))
        back = _card(shop, (-amount * Decimal(share)).quantize(CENT, ROUND_HALF_EVEN), day, text=text)
        booked = working_day(day + timedelta(days=8))
        refund = replace(
            back,
            booking_date=booked,
            value_date=booked,
            purpose=f"Gutschrift {back.purpose}",
            gvc="106",
            bank_transaction_code="PMNT-CCRD-RIMB",
        )
        yield Movement(record=refund)

    return what


def card_reversal(shops: Sequence[Shop]) -> What:
    """A function that makes demo data: a debit card payment, announced and booked, and on the working day after its
    booking a credit of the same amount, by which the bank takes it back as wrongly booked (is_reversal)."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        booking = next(debit_card(shops)(day, dice))
        yield booking
        booked = working_days_later(booking.record.booking_date, 1)
        storno = replace(
            booking.record,
            amount=-booking.record.amount,
            booking_date=booked,
            value_date=booking.record.value_date,
            purpose=f"STORNO {booking.record.purpose}",
            bank_transaction_code="PMNT-CCRD-RIMB",
            bank_text="STORNO",
            is_reversal=True,
        )
        yield Movement(record=storno)

    return what


def cash_machine(amounts: Sequence[int]) -> What:
    """A function that makes demo data: cash from a machine on any day, booked on that or the next working day; the
    value date is the day itself."""

    def what(day: date, dice: Dice) -> Iterator[Movement]:
        yield Movement(
            record=in_euro(
                Decimal(-dice.pick(amounts)).quantize(CENT),
                working_day(day),
                value_date=day,
                counterpart_name=f"GA NR0000{dice.number(4)} BLZ99910000 0",
                purpose=f"{day:%d.%m}/{9 + dice.below(10)}.{dice.below(6)}5UHR Innenstadt",
                gvc="083",
                bank_transaction_code="PMNT-CNTR-CWDL",
                bank_text="BARGELDAUSZAHLUNG",
            ),
        )

    return what


def _card(shop: Shop, amount: Decimal, day: date, *, text: str) -> TransactionRecord:
    return in_euro(
        amount,
        working_days_later(day, 4),
        value_date=day,
        counterpart_name=text,
        purpose=f"Kauf vom {day:%d.%m.%Y}",
        gvc="006",
        bank_transaction_code="PMNT-CCRD-POSC",
        mcc=shop.mcc,
        bank_text="KREDITKARTENUMSATZ",
    )


def _announcement(shop: Shop, amount: Decimal, day: date, mcc: str | None) -> TransactionRecord:
    return in_euro(
        amount,
        day,
        value_date=None,
        status="pending",
        counterpart_name=shop.announced,
        purpose=shop.announced,
        bank_transaction_code="PMNT-CCRD-OTHR",
        mcc=mcc,
        bank_text="UMSATZ VORGEMERKT",
    )
