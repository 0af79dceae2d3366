"""The habits of the demo households by topic: what people do month by month."""

from datetime import date, timedelta
from decimal import Decimal

from connectors.sources.demo import merchants as at
from connectors.sources.demo.bookings import (
    Habit,
    Party,
    bank_row,
    direct_debit,
    returned_debit,
    transfer_in,
    transfer_out,
    varying_debit,
)
from connectors.sources.demo.cards import cash_machine, credit_card, debit_card, foreign_card, refunded, reversed_card
from connectors.sources.demo.ledger import Account, Ledger
from connectors.sources.demo.rhythms import (
    ANCHOR,
    Price,
    dated,
    every,
    monthly,
    quarterly,
    rising,
    scattered,
    some_days,
    steady,
    twice_a_year,
    working_day,
    yearly,
)


def income(salary: Price) -> tuple[Habit, ...]:
    """A salary late in the month."""
    wording = "LOHN / GEHALT {day:%m/%Y} PERS.NR. 1204"
    return (
        Habit(
            "salary",
            monthly(27),
            transfer_in(at.EMPLOYER, salary, wording, code="SALA", reference="GEHALT{day:%Y%m}"),
        ),
    )


def home(rent: Price) -> tuple[Habit, ...]:
    """Rent on the first of the month, and the other costs of a flat."""
    return (
        Habit("rent", monthly(1), transfer_out(at.LANDLORD, rent, "Miete Wohnung 12, Ahornweg 7", standing=True)),
        Habit("power", monthly(15), direct_debit(at.UTILITY, rising("78.00", by="4.00"), "Abschlag Strom {day:%m/%Y}")),
        Habit(
            "telephone",
            monthly(5),
            direct_debit(at.TELEPHONE, rising("39.95", by="2.00", month=9), "Festnetz Rechnung {number} {day:%m/%Y}"),
        ),
        Habit(
            "broadcasting fee",
            quarterly(15, first_month=2),
            direct_debit(at.BROADCASTING_FEE, rising("55.08", by="0.90"), "Rundfunkbeitrag {day:%m.%Y} ff."),
        ),
    )


def contracts() -> tuple[Habit, ...]:
    """Subscriptions of all five rhythms; prices rise, and one pauses every August."""
    ticket = dated("49.00", (date(2025, 1, 1), "58.00"), (date(2026, 1, 1), "63.00"))
    return (
        Habit(
            "vegetable box",
            every(7, offset=1),
            direct_debit(at.VEGETABLE_BOX, rising("23.50", by="1.00", month=3), "Ökokiste KW {day:%V} Kd 20417"),
        ),
        Habit(
            "flowers",
            every(14, offset=3),
            direct_debit(at.FLOWERS, rising("18.99", by="1.00", month=5), "Blumenabo Lieferung {number}"),
        ),
        Habit(
            "netflix",
            monthly(8),
            direct_debit(at.NETFLIX, rising("12.99", by="1.00", month=4), "Netflix Monatsabo", code="SUBS"),
        ),
        Habit(
            "spotify", monthly(19), direct_debit(at.SPOTIFY, rising("10.99", by="1.00", month=10), "Spotify Premium")
        ),
        Habit("gym", monthly(3, pause=(8,)), direct_debit(at.GYM, rising("24.90", by="2.00", month=2), "Beitrag")),
        Habit("rail pass", monthly(6), direct_debit(at.RAIL_PASS, ticket, "Deutschlandticket {day:%m.%Y}")),
        Habit(
            "cloud storage",
            yearly(9, 17),
            direct_debit(at.CLOUD_STORAGE, rising("119.88", by="12.00"), "Dropbox Plus Jahresabo", code="SUBS"),
        ),
        Habit("automobile club", yearly(6, 2), direct_debit(at.AUTOMOBILE_CLUB, rising("94.00", by="2.00"), "Beitrag")),
        Habit(
            "car insurance",
            quarterly(2),
            direct_debit(at.CAR_INSURANCE, rising("96.40", by="5.10"), "KFZ-VERS. 815/4711 Beitrag", code="INSU"),
        ),
        Habit(
            "liability insurance",
            yearly(3, 31),
            direct_debit(at.LIABILITY_INSURANCE, rising("62.30", by="1.90"), "Privathaftpflicht AS-9302"),
        ),
    )


def everyday() -> tuple[Habit, ...]:
    """Groceries, chemist, fuel and cash, with a debit card."""
    return (
        Habit("groceries", some_days(13), debit_card(*at.SUPERMARKETS)),
        Habit("bakery", every(28, offset=5), debit_card(at.BAKERY, times=2, has_id=False)),
        Habit("drugstore", some_days(3), debit_card(*at.DRUGSTORES)),
        Habit("pharmacy", some_days(2), debit_card(at.PHARMACY)),
        Habit("fuel", some_days(3), debit_card(at.FUEL)),
        Habit("cash", some_days(3), cash_machine((50, 50, 100, 20))),
    )


def oddities() -> tuple[Habit, ...]:
    """Rare events that break naive readers: signs, returns, reversals (Stornos), texts with special characters."""
    paypal = "1034.PP.1494.PP . DOMINOSPIZZ, Ihr Einkauf bei DOMINOSPIZZ"
    return (
        Habit("paypal", some_days(3), varying_debit(at.PAYPAL, "13.50", "34.00", paypal)),
        Habit("reversal", twice_a_year(4, 14), reversed_card(at.SUPERMARKETS[0])),
        Habit(
            "returned debit", twice_a_year(4, 24), returned_debit(at.GYM, steady("19.00"), "Aufnahmegebühr {number}")
        ),
        Habit(
            "shared gift",
            monthly(12, pause=(1, 3, 6, 7, 9, 11)),
            transfer_out(at.FRIEND, steady("25.00"), "50% Geschenk für Oma's Fest"),
        ),
        Habit(
            "roof",
            twice_a_year(5, 28),
            transfer_out(at.ROOFER, rising("140.00", by="7.50"), "rechnung_{day:%Y}_{number}"),
        ),
        Habit(
            "doctor",
            twice_a_year(1, 23),
            transfer_out(at.DOCTOR, steady("48.26"), "Rechnung {number} Zahnärztliche Leistung"),
        ),
        Habit(
            "friend pays back",
            monthly(21, pause=(2, 5, 8, 11)),
            transfer_in(at.FRIEND, steady("18.50"), "Danke! Pizza & Kino", days_later=1),
        ),
        Habit(
            "child benefit",
            monthly(10),
            transfer_in(at.FAMILY_FUND, rising("250.00", by="4.50"), "KG 115FK204731 {day:%m/%y}", code="BECH"),
        ),
        Habit(
            "deposit",
            twice_a_year(3, 9),
            bank_row(
                steady("150.00"),
                gvc="082",
                iso="PMNT-CNTR-CDPT",
                bank_text="BARGELDEINZAHLUNG",
                purpose="SB-Einzahlung {day:%d.%m.%Y}",
            ),
        ),
        Habit(
            "fee",
            monthly(31),
            bank_row(
                steady("-4.90"),
                gvc="808",
                iso="ACMT-MDOP-CHRG",
                bank_text="ENTGELTABSCHLUSS",
                purpose="Entgelt Girokonto {day:%m/%Y}",
            ),
        ),
        Habit(
            "annex",
            twice_a_year(6, 19),
            bank_row(steady("-12.30"), gvc=None, iso=None, bank_text=None, purpose="Vorgang {number} lt. Anlage"),
        ),
        Habit(
            "unexplained",
            every(53),
            bank_row(scattered("-19.90", "-2.10"), gvc=None, iso=None, bank_text=None, purpose="{number}/{day:%j}"),
        ),
    )


def card_spending() -> tuple[Habit, ...]:
    """A credit card for eating out, travel, leisure and the internet; at any time, some payment is still pending."""
    return (
        Habit("restaurant", every(4), credit_card(*at.RESTAURANTS)),
        Habit("travel", some_days(3), credit_card(*at.TRAVEL)),
        Habit("leisure", some_days(3), credit_card(*at.LEISURE)),
        Habit("online", some_days(4), credit_card(*at.ONLINE_SHOPS)),
        Habit("clothes", twice_a_year(4, 7), refunded(at.ZALANDO, "0.5")),
        Habit("london", quarterly(18), foreign_card(at.LONDON_SHOP, "GBP", "1.17")),
    )


def interest(amount: str, *, by: str) -> tuple[Habit, ...]:
    """Interest paid to the owner at the end of each quarter, on the day itself."""
    row = bank_row(
        rising(amount, by=by), gvc="814", iso="ACMT-MCOP-INTR", bank_text="ABSCHLUSS", purpose="Zinsen {day:%m/%Y}"
    )
    return (Habit("interest", quarterly(31, first_month=3), row),)


def loan_interest(amount: str) -> tuple[Habit, ...]:
    """Interest that the owner of a loan pays at the end of each quarter."""
    row = bank_row(
        steady(f"-{amount}"), gvc="814", iso="ACMT-MDOP-INTR", bank_text="ABSCHLUSS", purpose="Sollzinsen {day:%m/%Y}"
    )
    return (Habit("interest", quarterly(31, first_month=3), row),)


def own_transfer(
    name: str, *, sender: Party, receiver: Party, price: Price, day: int, wording: str, days_later: int
) -> tuple[Habit, Habit]:
    """Both legs of a standing order between own accounts: the sender's and the receiver's."""
    return (
        Habit(f"{name} out", monthly(day), transfer_out(receiver, price, wording, standing=True)),
        Habit(f"{name} in", monthly(day), transfer_in(sender, price, wording, days_later=days_later)),
    )


def unsettled(card: Account) -> Decimal:
    """The debt of a card before 2024: its last month of 2023, which the first settlement pays."""
    last = ANCHOR - timedelta(days=1)
    return sum((row.amount for row in Ledger(card).booked(last.replace(day=1), last)), Decimal("0.00"))


def settlement(card: Account, payer: Party) -> tuple[Habit, Habit]:
    """The card's total of the last month, on the sixth: collected from the payer, credited to the card on the same
    day."""
    ledger = Ledger(card)
    wording = "Kreditkartenabrechnung {day:%m/%Y}"

    def total(day: date) -> Decimal:
        last = working_day(day).replace(day=1) - timedelta(days=1)
        spent = -sum((row.amount for row in ledger.booked(last.replace(day=1), last)), Decimal("0.00"))
        assert spent > 0  # something is booked every month: the restaurant habit alone brings ten rows
        return spent

    collects = Party(name=card.bank.name, iban=payer.iban)
    return (
        Habit("settlement", monthly(6), direct_debit(collects, total, wording)),
        Habit("settlement", monthly(6), transfer_in(payer, total, wording)),
    )
