"""The accounts of a user, with their balances."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from msgspec import Struct

from analytics.minor_digits import in_digits
from analytics.records import UNNAMED, AccountKind, AccountRecord
from storage import connections
from storage.connections import SHARED, StoredConnection
from storage.database import Row, Session, add_row_unless_there, set_values

BANK_CODE_DIGITS, ACCOUNT_DIGITS = 8, 10  # of a German IBAN
NAME_CHARACTERS_MAX = 140  # as of the names that sources give
COLUMNS = (
    "id, connection_id, stable_key, iban, former_ibans, coalesce(given_name, name) AS said_name, kind, currency,"
    " bank_name, bic, balance, balance_date, last_synced_at, hidden_at IS NOT NULL AS is_hidden, perhaps_same_as,"
    " coalesce(given_credit_line, credit_line) AS credit_line"
)

Difference = Literal["currency", "kind", "iban"]
DIFFERENCES: tuple[Difference, ...] = ("currency", "kind", "iban")


class AccountUnknown(Exception):
    """The user has no account with this id or name. `bankdata accounts list` shows them."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class AccountAmbiguous(Exception):
    """Several accounts of the user have this name. Give the id instead: `bankdata accounts list` shows it."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class StoredAccount(Struct, frozen=True, kw_only=True):
    """An account as it is stored. `balance` is the booked balance in `currency` at the end of `balance_date`, None
    where the source gives none. `said_name` is the name that the user gave the account, else the one from its source.
    `former_ibans` are those that the bank has replaced by `iban`, with a blank between them. `perhaps_same_as` is the
    id of another account that this one may duplicate; it stays when the user has answered that it does not
    (`same_as`). `credit_line` is how far it may go below zero, as its user says, else its bank; None: nobody does."""

    id: str
    connection_id: str
    stable_key: str
    iban: str | None
    said_name: str | None
    kind: AccountKind | None
    currency: str
    bank_name: str
    bic: str | None
    balance: Decimal | None
    balance_date: date | None
    last_synced_at: datetime | None
    former_ibans: str | None = None
    is_hidden: bool = False
    perhaps_same_as: str | None = None
    credit_line: Decimal | None = None

    @property
    def limit(self) -> Decimal:
        """The lowest balance that the account may have without asking its bank: zero, or less by its credit line."""
        return -(self.credit_line or Decimal(0))

    @property
    def name(self) -> str | None:
        """The name to show: the user's or the source's. Without either: None if the account has an IBAN, else its bank
        code and number as in the file, or the bank's name if the file names no account at all."""
        if self.said_name is not None or self.iban is not None:
            return self.said_name
        return self.bank_name if self.stable_key == UNNAMED else self.stable_key.replace("/", " / ")

    @property
    def label(self) -> str:
        """The name by which messages to people call the account: its name, else the IBAN, else the id."""
        return self.name or self.iban or self.id

    @property
    def same_as(self) -> str | None:
        """The id of the account that this one may duplicate, while this one is hidden; None otherwise, because showing
        it again answers that it duplicates none."""
        return self.perhaps_same_as if self.is_hidden else None

    @property
    def ibans(self) -> list[str]:
        """All IBANs under which payments find the account: the present one first, then those that it replaced."""
        return own_ibans(self.iban, self.former_ibans)

    @property
    def named_ibans(self) -> list[str]:
        """The IBANs by which a payment names the account: its own, else that of its German bank code and number. Some
        banks use another one, which is not known then."""
        number = german_number(self.stable_key)
        if self.ibans or number is None:
            return self.ibans
        return [f"DE{98 - int(number + '131400') % 97:02}{number}"]  # ISO 13616, with 131400 for DE00

    def difference(self, other: "StoredAccount") -> Difference | None:
        """The first of currency, kind and IBAN that both accounts state and state differently; None where they may be
        one and the same account."""
        for name in DIFFERENCES:
            one, another = getattr(self, name), getattr(other, name)
            if one and another and one != another:
                return name
        return None


class SelectedAccounts(NamedTuple):
    """Some or all accounts of a user that are not hidden, in the order in which they first appeared."""

    accounts: list[StoredAccount]
    is_everything: bool

    @property
    def ids(self) -> list[str]:
        """The ids of the selected accounts."""
        return [account.id for account in self.accounts]

    @property
    def filter(self) -> list[str] | None:
        """The account ids that a query has to filter by; None when everything is selected, so that the query has to
        leave out only hidden accounts."""
        return None if self.is_everything else self.ids


def own_ibans(iban: str | None, former_ibans: str | None) -> list[str]:
    """The IBANs in two columns of an account, the present one first."""
    return [*([iban] if iban else []), *(former_ibans or "").split()]


def german_number(key: str) -> str | None:
    """What follows the check digits in the IBAN of a German account, by its bank code and number (`code/number`); None
    for another key."""
    code, _, number = key.partition("/")
    is_german = len(code) == BANK_CODE_DIGITS and len(number) <= ACCOUNT_DIGITS and (code + number).isdecimal()
    return code + number.zfill(ACCOUNT_DIGITS) if is_german and number else None


def of_user(session: Session, user_id: str) -> list[StoredAccount]:
    """The accounts of a user that are not hidden, in the order in which they first appeared."""
    return [account for account in every(session, user_id) if not account.is_hidden]


def everything(session: Session, user_id: str) -> SelectedAccounts:
    """The selection of all accounts of a user that are not hidden."""
    return SelectedAccounts(of_user(session, user_id), is_everything=True)


def every(session: Session, user_id: str) -> list[StoredAccount]:
    """All accounts of a user, hidden ones included, in the order in which they first appeared."""
    rows = session.rows(f"SELECT {COLUMNS}, position FROM accounts WHERE user_id = $1", user_id)
    rows.sort(key=lambda row: (row.pop("position"), row["id"]))  # cheaper than in SQL
    return [StoredAccount(**row) for row in rows]


def resolve(session: Session, user_id: str, id_or_name: str) -> StoredAccount:
    """The account with this id, else IBAN (a former one last), else name in whatever case, hidden or not. Raises
    AccountUnknown and AccountAmbiguous."""
    owned = every(session, user_id)
    wanted = id_or_name.strip()
    compact, folded = "".join(wanted.split()).upper(), wanted.casefold()
    for found in (
        [account for account in owned if account.id == wanted],
        [account for account in owned if account.iban == compact],
        [account for account in owned if compact in account.ibans],
        [account for account in owned if (account.name or "").casefold() == folded],
    ):
        if len(found) > 1:
            raise AccountAmbiguous
        if found:
            return found[0]
    raise AccountUnknown


def is_name(text: str) -> bool:
    """Whether a user may give an account this name."""
    return bool(text.strip()) and text.isprintable() and len(text) <= NAME_CHARACTERS_MAX


def is_credit_line(amount: Decimal, currency: str) -> bool:
    """Whether a user may say that an account in this currency can go below zero by this amount."""
    return amount >= 0 and amount == in_digits(amount, currency)


def rename(session: Session, *, user_id: str, account_id: str, name: str | None) -> None:
    """Give the account the user's own name; None brings back the name from its source."""
    session.changes(user_id)
    set_values(session, "accounts", {"user_id": user_id, "id": account_id}, given_name=name)


def given(session: Session, user_id: str) -> dict[str, tuple[str | None, Decimal | None]]:
    """The name and the credit line that the user has given each of their accounts, by its id."""
    rows = session.rows(
        "SELECT id, given_name, given_credit_line FROM accounts WHERE user_id = $1 ORDER BY id", user_id
    )
    return {row["id"]: (row["given_name"], row["given_credit_line"]) for row in rows}


def set_credit_line(session: Session, *, user_id: str, account_id: str, amount: Decimal | None) -> None:
    """Say how far the account may go below zero (positive); None brings back what its bank says."""
    session.changes(user_id)
    set_values(session, "accounts", {"user_id": user_id, "id": account_id}, given_credit_line=amount)


def hide(session: Session, *, user_id: str, account_id: str, since: datetime | None) -> None:
    """Hide the account from lists and sums, or show it again (`since` None); its bookings are imported either way.
    To hide one that may be another account (`perhaps_same_as`) takes back the answer that it is not. Figures made
    before count as outdated."""
    _change(session, user_id)
    set_values(session, "accounts", {"user_id": user_id, "id": account_id}, hidden_at=since)


def ask_whether_same(session: Session, *, user_id: str, account_id: str, other: str, now: datetime) -> None:
    """Hide the account, and note `other` as its possible duplicate, until the user has answered whether they are
    one."""
    hide(session, user_id=user_id, account_id=account_id, since=now)
    set_values(session, "accounts", {"user_id": user_id, "id": account_id}, perhaps_same_as=other)


def bring(
    session: Session, connection: StoredConnection, account: AccountRecord, *, account_id: str, now: datetime
) -> bool:
    """Add the account that the connection reports, or fill in properties that were unknown so far (an IBAN only if no
    other account of the user in this currency has it), and note that the connection reports it; True when the account
    is new to the user. An IBAN that a bank reports in place of the former one holds. Somebody who shares an account
    fills in nothing of the user's own; one that only they have shared until now is called as the user's bank calls it.
    """
    user_id = connection.user_id
    known = session.rows(
        "SELECT iban, former_ibans, name, kind, bic, connection_id, stable_key, EXISTS (SELECT 1 FROM account_sources"
        " WHERE user_id = $1 AND account_id = $2 AND connection_id = $3) AS is_brought FROM accounts"
        " WHERE user_id = $1 AND id = $2",
        *(user_id, account_id, connection.id),
    )
    properties = ("iban", "name", "kind", "bic") if connection.connector not in SHARED else ()
    if known and any(known[0][name] is None and getattr(account, name) is not None for name in properties):
        session.execute(
            "UPDATE accounts SET iban = coalesce(iban, CASE WHEN NOT EXISTS (SELECT 1 FROM accounts AS other"
            " WHERE other.user_id = $1 AND other.iban = $3 AND other.currency = accounts.currency) THEN $3 END),"
            " name = coalesce(name, $4), kind = coalesce(kind, $5), bic = coalesce(bic, $6)"
            " WHERE user_id = $1 AND id = $2",
            *(user_id, account_id, account.iban, account.name, account.kind, account.bic),
        )
    elif not known:
        session.execute(
            "INSERT INTO accounts (id, user_id, connection_id, stable_key, iban, name, kind, currency, bic,"
            " bank_name, position, created_at)"
            " SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, count(*), $11 FROM accounts WHERE user_id = $2",
            *(account_id, user_id, connection.id, account.stable_key, account.iban, account.name, account.kind),
            *(account.currency, account.bic, account.bank_name or connection.bank_name, now),
        )
    if known and _becomes_own(session, known[0]["connection_id"], connection):
        own = {"connection_id": connection.id, "stable_key": account.stable_key, "name": account.name}
        own["bank_name"] = account.bank_name or connection.bank_name
        set_values(session, "accounts", {"user_id": user_id, "id": account_id}, **own)
    elif known and _has_new_iban(known[0], connection, account):
        former = own_ibans(known[0]["iban"], known[0]["former_ibans"])
        of_account = {"user_id": user_id, "id": account_id}
        set_values(session, "accounts", of_account, iban=account.iban, former_ibans=" ".join(former))
    if not (known and known[0]["is_brought"]):
        source = {"user_id": user_id, "account_id": account_id, "connection_id": connection.id}
        add_row_unless_there(session, "account_sources", **source)
    return not known


def _becomes_own(session: Session, known_by: str, connection: StoredConnection) -> bool:
    """Whether a bank of the user's tells what so far was brought by a connection (`known_by`) to somebody who shares
    it."""
    if known_by == connection.id or connection.connector in SHARED:
        return False
    named = (connection.user_id, known_by)
    rows = session.rows("SELECT connector FROM connections WHERE user_id = $1 AND id = $2", *named)
    return rows[0]["connector"] in SHARED and connection.id not in connections.of_files(session, connection.user_id)


def _has_new_iban(known: Row, connection: StoredConnection, account: AccountRecord) -> bool:
    """Whether the connection that brought the account first calls it as before, but states an IBAN that is new."""
    is_same = (known["connection_id"], known["stable_key"]) == (connection.id, account.stable_key)
    before = own_ibans(known["iban"], known["former_ibans"])
    return is_same and bool(before) and account.iban is not None and account.iban not in before


def mark_synced(session: Session, *, user_id: str, connection_id: str, now: datetime) -> None:
    """Set `now` as the time of the last sync of every account that the connection reports; this counts as a change of
    the user's data."""
    session.changes(user_id)
    session.execute(
        "UPDATE accounts SET last_synced_at = $3 WHERE user_id = $1 AND id IN"
        " (SELECT account_id FROM account_sources WHERE user_id = $1 AND connection_id = $2)",
        *(user_id, connection_id, now),
    )


def _change(session: Session, user_id: str) -> None:
    """Raise the user's state and data version, so that results computed before count as outdated."""
    session.changes(user_id)
    session.execute("UPDATE users SET data_version = state WHERE id = $1", user_id)
