"""The households of the demo bank, and the users that `bankdata demo` makes."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import AccountKind
from connectors.sources.demo import habits
from connectors.sources.demo.bookings import Habit, Party
from connectors.sources.demo.cards import debit_card
from connectors.sources.demo.identifiers import digits, german_iban
from connectors.sources.demo.ledger import Account, Bank
from connectors.sources.demo.rhythms import every, rising, steady

# XXX at the end of a BIC means the head office (ISO 9362)
MUSTERBANK = Bank(name="Musterbank", code="99910000", bic="MUSBDEDAXXX")
DIRECT_BANK = Bank(name="Beispiel Direktbank", code="99911000", bic="BSPDDEDAXXX")
GLOBUS_BANK = Bank(name="Globus Privatbank", code="99912000", bic="GLPBDEDAXXX")


class DemoUser(Struct, frozen=True, kw_only=True):
    """A user that `bankdata demo` makes, with the settings of each connection."""

    name: str
    has_subscription: bool = True
    connections: tuple[Mapping[str, str], ...] = ()


USERS = (
    DemoUser(
        name="demo",
        connections=(
            {"household": "demo-one", "seed": "demo", "bank_name": MUSTERBANK.name},
            {"household": "demo-two", "seed": "demo", "bank_name": DIRECT_BANK.name},
        ),
    ),
    DemoUser(name="solo", connections=({"household": "solo", "seed": "solo", "bank_name": MUSTERBANK.name},)),
    DemoUser(name="empty"),
    DemoUser(
        name="lapsed",
        has_subscription=False,
        connections=({"household": "lapsed", "seed": "lapsed", "bank_name": MUSTERBANK.name},),
    ),
    DemoUser(name="globe", connections=({"household": "globe", "seed": "globe", "bank_name": GLOBUS_BANK.name},)),
)


def household(
    name: str, *, seed: str, accounts: int | None = None, bank_name: str | None = None
) -> tuple[Account, ...]:
    """The accounts of a demo household in the order of the bank: `accounts` of them (None: all it has), with plain
    checking accounts added where it has fewer. `bank_name` replaces the names of its banks. Raises KeyError for an
    unknown household."""
    own = HOUSEHOLDS[name](seed)
    count = len(own) if accounts is None else accounts
    own = own[:count] + tuple(_plain_account(seed, number) for number in range(len(own) + 1, count + 1))
    if bank_name is not None:
        own = tuple(replace(account, bank=replace(account.bank, name=bank_name)) for account in own)
    return own


def _family(seed: str, first: Bank, second: Bank) -> tuple[Account, ...]:
    """A checking and a savings account at the first bank, a nameless checking account and a credit card at the
    second."""
    giro, reserve, second_giro = (
        _owner(first, seed, "giro"),
        _owner(first, seed, "reserve"),
        _owner(second, seed, "second giro"),
    )
    saving_out, saving_in = habits.own_transfer(
        "saving", sender=giro, receiver=reserve, price=rising("300.00", by="25.00"), day=2,
        wording="Sparrate Notgroschen", days_later=0,
    )  # fmt: skip
    supply_out, supply_in = habits.own_transfer(
        "supply", sender=giro, receiver=second_giro, price=rising("340.00", by="15.00"), day=1,
        wording="Übertrag auf Zweitkonto", days_later=1,
    )  # fmt: skip
    card = _account(
        seed, second, "card", "credit_card", "Visa Karte", "0.00", habits.of("card_spending"), has_iban=False
    )
    collected, credited = habits.settlement(card, payer=second_giro)
    giro_habits = (
        *habits.income(rising("2585.40", by="24.60")),
        *habits.home(rising("890.00", by="22.00", month=7)),
        *habits.of("contracts"),
        *habits.of("everyday"),
        *habits.of("oddities"),
        saving_out,
        supply_out,
    )
    return (
        _account(seed, first, "giro", "checking", "Girokonto", "2343.27", giro_habits),
        _account(
            seed, first, "reserve", "savings", "Tagesgeld", "5200.00",
            (saving_in, *habits.of("savings")),
        ),
        _account(seed, second, "second giro", "checking", None, "640.10", (supply_in, collected)),
        replace(card, opening=habits.open_debt(card), habits=(*card.habits, credited)),
    )  # fmt: skip


def _solo_household(seed: str) -> tuple[Account, ...]:
    parts = (
        *habits.income(rising("1890.00", by="35.00")),
        *habits.home(rising("745.00", by="18.00", month=7)),
        *habits.of("contracts"),
        *habits.of("everyday"),
        *habits.of("oddities"),
    )
    return (_account(seed, MUSTERBANK, "giro", "checking", "Girokonto", "920.55", parts),)


def _lapsed_household(seed: str) -> tuple[Account, ...]:
    parts = (*habits.income(steady("1480.00")), *habits.home(steady("690.00")), *habits.of("everyday"))
    return (_account(seed, MUSTERBANK, "giro", "checking", "Girokonto", "1310.00", parts),)


def _globe(seed: str) -> tuple[Account, ...]:
    """Accounts in four currencies, a loan that is gradually paid off, and shares whose value the bank does not
    state."""
    giro, loan = _owner(GLOBUS_BANK, seed, "giro"), _owner(GLOBUS_BANK, seed, "loan")
    paid, received = habits.own_transfer(
        "instalment", sender=giro, receiver=loan, price=steady("520.00"), day=30,
        wording="Rate Darlehen 7730", days_later=0,
    )  # fmt: skip
    giro_habits = (
        *habits.income(rising("2520.00", by="60.00")),
        *habits.home(rising("980.00", by="25.00", month=7)),
        Habit("groceries", every(2), debit_card(habits.shops("SUPERMARKETS"))),
        paid,
    )
    return (
        _account(seed, GLOBUS_BANK, "giro", "checking", "Privatkonto", "2750.80", giro_habits),
        _account(
            seed, GLOBUS_BANK, "dollars", "checking", "US-Dollar-Konto", "1180.00", habits.of("dollars"), currency="USD"
        ),
        _account(seed, GLOBUS_BANK, "pounds", "checking", "Pfund-Konto", "415.25", habits.of("pounds"), currency="GBP"),
        _account(
            seed, GLOBUS_BANK, "francs", "savings", "Franken-Sparkonto", "9600.00",
            habits.of("francs"), currency="CHF",
        ),
        _account(
            seed, GLOBUS_BANK, "loan", "loan", "Wohnbaudarlehen", "-84000.00",
            (received, *habits.of("loan")),
        ),
        _account(
            seed, GLOBUS_BANK, "shares", "membership", "Genossenschaftsanteile", "0.00",
            habits.of("shares"), has_iban=False, says_balance=False,
        ),
    )  # fmt: skip


def _plain_account(seed: str, number: int) -> Account:
    return _account(
        seed,
        MUSTERBANK,
        f"account {number}",
        "checking",
        f"Konto {number}",
        f"{100 * number}.00",
        habits.of("everyday"),
    )


def _account(
    seed: str,
    bank: Bank,
    key: str,
    kind: AccountKind,
    name: str | None,
    opening: str,
    parts: tuple[Habit, ...],
    *,
    currency: str = "EUR",
    has_iban: bool = True,
    says_balance: bool = True,
) -> Account:
    iban = german_iban(bank.code, seed, key) if has_iban else None
    hidden = f"{digits(6, seed, key, 'front')}******{digits(4, seed, key, 'back')}"
    return Account(
        seed=seed,
        key=key,
        bank=bank,
        stable_key=iban or (hidden if kind == "credit_card" else f"{bank.code}/{digits(9, seed, key)}"),
        iban=iban,
        kind=kind,
        name=name,
        opening=Decimal(opening),
        habits=parts,
        currency=currency,
        says_balance=says_balance,
    )


def _owner(bank: Bank, seed: str, key: str) -> Party:
    """The owner as the counterpart of a transfer between own accounts."""
    return Party(
        name=OWNERS.get(seed, "Alex Muster"), iban=german_iban(bank.code, seed, key), bic=bank.bic, bank_name=bank.name
    )


OWNERS = {"demo": "Mira Sommerfeld", "globe": "Noël Ångström"}

HOUSEHOLDS: Mapping[str, Callable[[str], tuple[Account, ...]]] = {
    "standard": lambda seed: _family(seed, MUSTERBANK, MUSTERBANK),
    "demo-one": lambda seed: _family(seed, MUSTERBANK, DIRECT_BANK)[:2],
    "demo-two": lambda seed: _family(seed, MUSTERBANK, DIRECT_BANK)[2:],
    "solo": _solo_household,
    "lapsed": _lapsed_household,
    "globe": _globe,
}
