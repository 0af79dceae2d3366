"""Account changes: at each commit, what the user's accounts show is compared with what they showed before.

This finds every change of an account, whatever made it (an import, a failed sync, a name or hiding by the user, a
merge), so that no other code has to report one.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal

from storage.database import Session, set_values

SHOWN = (
    "SELECT a.id, concat_ws(chr(31), coalesce('=' || a.iban, '-'),"
    " coalesce('=' || coalesce(a.given_name, a.name), '-'), a.bank_name, a.stable_key) AS bank_account,"
    " concat_ws(chr(31), coalesce(a.kind, ''), coalesce(a.balance::TEXT, ''), coalesce(a.last_synced_at::TEXT, ''),"
    " c.status) AS account, a.balance"
    " FROM accounts AS a JOIN connections AS c ON c.user_id = a.user_id AND c.id = a.connection_id"
    " WHERE a.user_id = $1 AND c.user_id = $1 AND a.hidden_at IS NULL ORDER BY a.id"
)
"""For each account that is not hidden: the texts that its transactions show of it, the texts that it shows itself, and
its balance."""


def settle(session: Session, user_id: str, state: int, written: Collection[str | None]) -> Mapping[str, Decimal | None]:
    """Mark the accounts that this transaction has added, changed or removed with `state`, the state in which the
    transaction ends, and with them the transactions that show what changed; transactions that came back are no longer
    listed as removed. `written` are the tables of which it has written rows. Returns the balance of each account that
    is not hidden, by id (None: not known). Only events come after it before the commit."""
    shown = {row["id"]: row for row in session.rows(SHOWN, user_id)}
    known = {
        row["id"]: row
        for row in session.rows(
            "SELECT id, bank_account, account, removed_state FROM account_states WHERE user_id = $1", user_id
        )
    }
    for id_, now in shown.items():
        before, texts = known.get(id_), (now["bank_account"], now["account"])
        if before is None or before["removed_state"] is not None:
            _appear(session, user_id, id_, state, texts, is_back=before is not None)
        elif (before["bank_account"], before["account"]) != texts:
            said = {"bank_account": now["bank_account"], "account": now["account"]}
            set_values(session, "account_states", {"user_id": user_id, "id": id_}, changed_state=state, **said)
            if before["bank_account"] != now["bank_account"]:
                set_values(session, "transactions", {"user_id": user_id, "account_id": id_}, changed_state=state)
    for id_, before in known.items():
        if id_ not in shown and before["removed_state"] is None:
            _disappear(session, user_id, id_, state)
    if "transactions" in written and session.rows("SELECT id FROM removed WHERE user_id = $1 LIMIT 1", user_id):
        session.execute(
            "DELETE FROM removed WHERE user_id = $1 AND id IN (SELECT id FROM transactions"
            " WHERE user_id = $1 AND changed_state = $2 AND account_id = ANY($3::TEXT[]))",
            *(user_id, state, list(shown)),
        )
    return {id_: now["balance"] for id_, now in shown.items()}


def _appear(session: Session, user_id: str, id_: str, state: int, texts: tuple[str, str], *, is_back: bool) -> None:
    """Mark the account as added in this state, whether new or back, and its transactions as added with it."""
    session.execute(
        "UPDATE account_states SET added_state = $3, changed_state = $3, removed_state = NULL, bank_account = $4,"
        " account = $5 WHERE user_id = $1 AND id = $2"
        if is_back
        else "INSERT INTO account_states (user_id, id, added_state, changed_state, bank_account, account)"
        " VALUES ($1, $2, $3, $3, $4, $5)",
        *(user_id, id_, state, *texts),
    )
    session.execute(
        "UPDATE transactions SET added_state = $3, changed_state = $3"
        " WHERE user_id = $1 AND account_id = $2 AND changed_state < $3",
        *(user_id, id_, state),
    )


def _disappear(session: Session, user_id: str, id_: str, state: int) -> None:
    """Mark the account as removed in this state, whether deleted or hidden, forget its texts, and list its transactions
    that are still stored as removed with it."""
    forgotten = {"bank_account": "", "account": ""}
    set_values(session, "account_states", {"user_id": user_id, "id": id_}, removed_state=state, **forgotten)
    session.execute(
        "INSERT INTO removed (user_id, id, account_id, removed_state)"
        " SELECT user_id, id, account_id, $3::BIGINT FROM transactions WHERE user_id = $1 AND account_id = $2",
        *(user_id, id_, state),
    )
