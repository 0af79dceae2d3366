"""The accounts of a user, with their balances."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from storage.database import Session, add_row_unless_there
from storage.importing.records import AccountKind, AccountRecord

UNNAMED = "unnamed"  # the key of an account that its file does not name at all
COLUMNS = (
    "id, connection_id, stable_key, iban, coalesce(given_name, name) AS said_name, kind, currency, bank_name, bic,"
    " balance, balance_date, last_synced_at, hidden_at IS NOT NULL AS is_hidden,"
    " perhaps_same_as"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAccount:
    """An account; `balance` is the booked one in `currency`, None where its source gives none; `said_name` is the
    user's name for it, else its source's; `perhaps_same_as` is the account that its user has been asked about."""

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
    is_hidden: bool = False
    perhaps_same_as: str | None = None

    @property
    def name(self) -> str | None:
        """What it is called: as said, else, where no IBAN tells it apart, bank and number as its file has them."""
        if self.said_name is not None or self.iban is not None:
            return self.said_name
        return self.bank_name if self.stable_key == UNNAMED else self.stable_key.replace("/", " / ")

    @property
    def called(self) -> str:
        """What a person knows it by."""
        return self.name or self.iban or self.id

    @property
    def same_as(self) -> str | None:
        """The account that it seems to be, as long as its user has not said whether it is."""
        return self.perhaps_same_as if self.is_hidden else None

    def difference(self, other: "StoredAccount") -> Difference | None:
        """What is stated of both accounts and tells them apart, None where they may be one."""
        for name in DIFFERENCES:
            one, another = getattr(self, name), getattr(other, name)
            if one and another and one != another:
                return name
        return None


class Selected(NamedTuple):
    """Some or all accounts of a user, in the order of `of_user`."""

    accounts: list[StoredAccount]
    is_everything: bool

    @property
    def ids(self) -> list[str]:
        """Their ids."""
        return [account.id for account in self.accounts]

    @property
    def filter(self) -> list[str] | None:
        """What a query has to filter by: nothing when these are all accounts of the user."""
        return None if self.is_everything else self.ids


def of_user(session: Session, user_id: str) -> list[StoredAccount]:
    """The accounts of a user that are not hidden, in the order in which they first appeared."""
    return [account for account in every(session, user_id) if not account.is_hidden]


def every(session: Session, user_id: str) -> list[StoredAccount]:
    """All accounts of a user, the hidden ones too."""
    rows = session.rows(f"SELECT {COLUMNS}, position FROM accounts WHERE user_id = $1", user_id)
    rows.sort(key=lambda row: (row.pop("position"), row["id"]))  # cheaper than in SQL
    return [StoredAccount(**row) for row in rows]


def named(session: Session, user_id: str, id_or_name: str) -> StoredAccount:
    """The account of this id, IBAN or name, hidden ones too; raises AccountUnknown and AccountAmbiguous."""
    owned = every(session, user_id)
    wanted = id_or_name.strip()
    compact, folded = "".join(wanted.split()).upper(), wanted.casefold()
    for found in (
        [account for account in owned if account.id == wanted],
        [account for account in owned if account.iban == compact],
        [account for account in owned if (account.name or "").casefold() == folded],
    ):
        if len(found) > 1:
            raise AccountAmbiguous
        if found:
            return found[0]
    raise AccountUnknown


def rename(session: Session, *, user_id: str, account_id: str, name: str | None) -> None:
    """Call the account by the user's own name from now on, or by its source's again."""
    _change(session, user_id)
    session.execute(
        "UPDATE accounts SET given_name = $3 WHERE user_id = $1 AND id = $2",
        *(user_id, account_id, name),
    )


def hide(session: Session, *, user_id: str, account_id: str, since: datetime | None) -> None:
    """Serve and sum the account no more, or again (None); what comes for it is kept either way."""
    _change(session, user_id)
    session.execute("UPDATE accounts SET hidden_at = $3 WHERE user_id = $1 AND id = $2", user_id, account_id, since)


def ask_whether_same(session: Session, *, user_id: str, account_id: str, other: str, now: datetime) -> None:
    """Hide the account until its user has said whether it is the other one."""
    hide(session, user_id=user_id, account_id=account_id, since=now)
    session.execute(
        "UPDATE accounts SET perhaps_same_as = $3 WHERE user_id = $1 AND id = $2", user_id, account_id, other
    )


def bring(
    session: Session,
    *,
    user_id: str,
    account_id: str,
    connection_id: str,
    bank_name: str,
    account: AccountRecord,
    now: datetime,
) -> bool:
    """Make the account known, or fill in what was unknown of it; True when it is new to the user."""
    known = session.rows("SELECT id FROM accounts WHERE user_id = $1 AND id = $2", user_id, account_id)
    if known:
        session.execute(
            "UPDATE accounts SET iban = coalesce(iban, CASE WHEN NOT EXISTS (SELECT 1 FROM accounts AS other"
            " WHERE other.user_id = $1 AND other.iban = $3 AND other.currency = accounts.currency) THEN $3 END),"
            " name = coalesce(name, $4), kind = coalesce(kind, $5), bic = coalesce(bic, $6)"
            " WHERE user_id = $1 AND id = $2",
            *(user_id, account_id, account.iban, account.name, account.kind, account.bic),
        )
    else:
        session.execute(
            "INSERT INTO accounts (id, user_id, connection_id, stable_key, iban, name, kind, currency, bic,"
            " bank_name, position, created_at)"
            " SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, count(*), $11 FROM accounts WHERE user_id = $2",
            account_id,
            user_id,
            connection_id,
            account.stable_key,
            account.iban,
            account.name,
            account.kind,
            account.currency,
            account.bic,
            account.bank_name or bank_name,
            now,
        )
    source = {"user_id": user_id, "account_id": account_id, "connection_id": connection_id}
    add_row_unless_there(session, "account_sources", **source)
    return not known


def set_balance(session: Session, *, user_id: str, account_id: str, balance: Decimal, day: date) -> None:
    """The booked balance at the end of `day`, that of the newest statement."""
    session.execute(
        "UPDATE accounts SET balance = $3, balance_date = $4 WHERE user_id = $1 AND id = $2",
        *(user_id, account_id, balance, day),
    )


def mark_synced(session: Session, *, user_id: str, connection_id: str, now: datetime) -> None:
    """A sync of the connection is complete: it covered every account that the connection brings."""
    session.changes(user_id)
    session.execute(
        "UPDATE accounts SET last_synced_at = $3 WHERE user_id = $1 AND id IN"
        " (SELECT account_id FROM account_sources WHERE user_id = $1 AND connection_id = $2)",
        *(user_id, connection_id, now),
    )


def _change(session: Session, user_id: str) -> None:
    """Results that were computed before belong to another state of the data."""
    session.changes(user_id)
    session.execute("UPDATE users SET data_version = state WHERE id = $1", user_id)
