"""What is derived of a booking when it is stored: type, category, merchant, and the text that a search reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from analytics.classification.categories import SAVINGS_KINDS
from analytics.classification.classify import classify
from analytics.classification.rules import Rule
from analytics.frames import CLASSIFIABLE
from analytics.search_text import searchable
from storage import journal, rules
from storage.database import Session, Transaction

SEEN = ("type", "category", "merchant_name")
DERIVED = ("type", "type_rule", "category", "category_rule", "merchant_name", "merchant_rule")
"""What is seen of a booking, and each with the rule behind it."""
OWN_ACCOUNT_RULE = "own-account"
SAID: dict[str, pl.DataType] = {
    "id": pl.String(),
    "account_id": pl.String(),
    "source_merchant_name": pl.String(),
    **{name: dtype for name, dtype in CLASSIFIABLE.items() if name not in ("account_kind", "merchant_name")},
}
"""What a stored row keeps of its source's words: all that a derivation needs."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the bookings of one user are read at present: own accounts, rules, remembered corrections."""

    own_ibans: Mapping[str, str | None]  # IBAN -> kind of the account
    kinds: Mapping[str, str | None]  # account id -> kind
    rules: Sequence[Rule]
    corrections: Mapping[str, str]

    @classmethod
    def of_user(cls, session: Session, user_id: str) -> "Derivation":
        """As the store knows it now."""
        owned = session.rows("SELECT id, iban, kind FROM accounts WHERE user_id = $1", user_id)
        return cls(
            own_ibans={row["iban"]: row["kind"] for row in owned if row["iban"]},
            kinds={row["id"]: row["kind"] for row in owned},
            rules=rules.of_user(session, user_id),
            corrections=rules.corrections(session, user_id),
        )

    def derive(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the columns DERIVED and `search_text`; takes SAID, other columns pass through."""
        kinds = pl.DataFrame(
            {"account_id": list(self.kinds), "account_kind": list(self.kinds.values())},
            schema={"account_id": pl.String, "account_kind": pl.String},
        )
        with_kind = rows.with_columns(merchant_name=pl.col("source_merchant_name")).join(
            kinds, on="account_id", how="left", maintain_order="left"
        )
        classified = classify(with_kind, own_ibans=self.own_ibans, rules=self.rules, corrections=self.corrections).drop(
            "account_kind"
        )
        return with_search_text(classified)


def with_search_text(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds `search_text`: merchant, counterpart and purpose in the spellings that a search compares."""
    text = pl.concat_str("merchant_name", "counterpart_name", "purpose", separator="\n", ignore_nulls=True)
    return rows.with_columns(search_text=searchable(text))


def derive_again(session: Transaction, user_id: str, transaction_ids: Sequence[str] | None = None) -> list[str]:
    """Derive stored bookings anew (all of them when None), under the rules and accounts of today; the ids of those
    that look different now. Where only another rule says the same, that is kept and nobody sees a change.

    Own transfers keep their category unless a rule of the user says otherwise.
    """
    stored = session.frame(
        f"SELECT {', '.join(SAID)}, transfer_account_id, {', '.join(f'{name} AS old_{name}' for name in DERIVED)}"
        " FROM transactions WHERE user_id = $1 AND NOT is_adjusting_entry AND ($2::TEXT[] IS NULL OR id = ANY($2))",
        user_id,
        list(transaction_ids) if transaction_ids is not None else None,
        schema={
            **SAID,
            "transfer_account_id": pl.String(),
            **{f"old_{name}": pl.String() for name in DERIVED},
        },
    )
    derivation = Derivation.of_user(session, user_id)
    derived = own_transfers_named(derivation.derive(stored), derivation.kinds)
    write(session, user_id, derived.filter(_differs(DERIVED)).select("id", *DERIVED, "search_text"))
    return derived.filter(_differs(SEEN))["id"].to_list()


def _differs(names: Sequence[str]) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"old_{name}")) for name in names)


def apply_rules(session: Transaction, user_id: str, *, now: datetime) -> int:
    """Derive everything the user has anew and journal what looks different; how many rows."""
    session.hold(user_id)
    changed = derive_again(session, user_id)
    journal.record(session, user_id=user_id, job_id="rules", changes=journal.changed(changed, "modified"), now=now)
    return len(changed)


def own_transfers_named(rows: pl.DataFrame, kinds: Mapping[str, str | None]) -> pl.DataFrame:
    """Rows with a `transfer_account_id` are TRANSFER, or SAVINGS when either side is a savings account (sources 6.2),
    unless the user has said otherwise."""
    savings = [id_ for id_, kind in kinds.items() if kind in SAVINGS_KINDS]
    by_user = pl.col("category_rule").fill_null("").str.starts_with("user-rule") | (
        pl.col("category_rule").fill_null("").str.starts_with("correction")
    )
    is_own = pl.col("transfer_account_id").is_not_null() & ~by_user
    is_savings = pl.col("account_id").is_in(savings) | pl.col("transfer_account_id").is_in(savings)
    category = pl.when(is_savings).then(pl.lit("SAVINGS")).otherwise(pl.lit("TRANSFER"))
    return rows.with_columns(
        category=pl.when(is_own).then(category).otherwise("category"),
        category_rule=pl.when(is_own).then(pl.lit(OWN_ACCOUNT_RULE)).otherwise("category_rule"),
    )


def write(session: Transaction, user_id: str, changed: pl.DataFrame) -> None:
    """Set the columns of `changed` (but `id`) on the user's transactions of these ids."""
    if changed.is_empty():
        return
    names = [name for name in changed.columns if name != "id"]
    assignments = ", ".join(f"{name} = changed.{name}" for name in names)
    with session.staged("changed", changed):
        session.execute(
            f"UPDATE transactions SET {assignments} FROM changed"
            " WHERE transactions.user_id = $1 AND transactions.id = changed.id",
            user_id,
        )
