"""The accounts of a user, with their balances."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from storage.database import Session
from storage.importing.records import AccountKind, AccountRecord

COLUMNS = (
    "id, connection_id, stable_key, iban, name, kind, currency, bank_name, bic, balance, balance_date, last_synced_at"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAccount:
    """An account; `balance` is the booked one in `currency`, None where its source gives none."""

    id: str
    connection_id: str
    stable_key: str
    iban: str | None
    name: str | None
    kind: AccountKind | None
    currency: str
    bank_name: str
    bic: str | None
    balance: Decimal | None
    balance_date: date | None
    last_synced_at: datetime | None


@dataclass(frozen=True, slots=True)
class Selected:
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
    """All accounts of a user in the order in which they first appeared."""
    rows = session.rows(f"SELECT {COLUMNS}, position FROM accounts WHERE user_id = $1", user_id)
    rows.sort(key=lambda row: (row.pop("position"), row["id"]))  # cheaper than in SQL
    return [StoredAccount(**row) for row in rows]


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
            "UPDATE accounts SET iban = coalesce(iban, $3), name = coalesce(name, $4), kind = coalesce(kind, $5),"
            " bic = coalesce(bic, $6) WHERE user_id = $1 AND id = $2",
            user_id,
            account_id,
            account.iban,
            account.name,
            account.kind,
            account.bic,
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
    session.execute(
        "INSERT INTO account_sources SELECT $1::TEXT, $2::TEXT, $3::TEXT WHERE NOT EXISTS"
        " (SELECT 1 FROM account_sources WHERE account_id = $2 AND connection_id = $3)",
        user_id,
        account_id,
        connection_id,
    )
    return not known


def set_balance(session: Session, *, user_id: str, account_id: str, balance: Decimal, day: date) -> None:
    """The booked balance at the end of `day`, that of the newest statement."""
    session.execute(
        "UPDATE accounts SET balance = $3, balance_date = $4 WHERE user_id = $1 AND id = $2",
        user_id,
        account_id,
        balance,
        day,
    )


def mark_synced(session: Session, *, user_id: str, connection_id: str, now: datetime) -> None:
    """A sync of the connection is complete: it covered every account that the connection brings."""
    session.execute(
        "UPDATE accounts SET last_synced_at = $3 WHERE user_id = $1 AND id IN"
        " (SELECT account_id FROM account_sources WHERE user_id = $1 AND connection_id = $2)",
        user_id,
        connection_id,
        now,
    )
    session.changes(user_id)
