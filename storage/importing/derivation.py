"""Derivation: type, category, finer category (leaf), merchant and search text of a booking, computed when it is stored
or something changes."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import polars as pl
from msgspec import Struct

from analytics.classification.categories import SAVINGS_KINDS
from analytics.classification.classify import classify, with_leaves
from analytics.classification.facts import LEAVES
from analytics.classification.leaves import OF_KINDS, OWN_TRANSFER
from analytics.classification.rules import ChosenCategory, Rule
from analytics.frames import CHARGES, CLASSIFIABLE, columns, compact, frame_of
from analytics.search_text import searchable_text
from storage import accounts, journal, rules
from storage.annotations import annotations, rule_tags
from storage.database import Session, Transaction
from storage.transactions import portions

SEEN = ("type", "category", "merchant_name", "detailed_category", "own_category_id")
LEAF = ("detailed_category", "detailed_rule")
OWN = "own_category_id"
DERIVED = ("type", "type_rule", "category", "category_rule", "merchant_name", "merchant_rule", *LEAF, OWN)
"""What is derived of a booking and seen, most of it with the rule behind it."""
REPORTED: dict[str, pl.DataType] = {
    "id": pl.String(),
    **dict.fromkeys(("account_id", *SEEN, *(f"old_{name}" for name in SEEN)), pl.Categorical()),
}
"""What is told of a booking that looks different now, with its former values; each text stands in memory once."""
CHARGED = [name for name in SEEN if name in CHARGES]
"""What is derived and recurring payments are found by."""
OWN_ACCOUNT_RULE = "own-account"
CHOSEN = "chosen"
ACCOUNTS = ("account_id", "transfer_account_id")
SAID: dict[str, pl.DataType] = {
    **columns("id, account_id, source_merchant_name"),
    **{name: dtype for name, dtype in CLASSIFIABLE.items() if name not in ("account_kind", "merchant_name")},
}
"""What a stored row keeps of its source's words: all that a derivation needs."""


class Derivation(Struct, frozen=True):
    """Everything on which the derivation of a user's bookings depends: own accounts, rules, corrections, choices."""

    own_ibans: Mapping[str, str | None]  # IBAN -> kind of the account
    kinds: Mapping[str, str | None]  # account id -> kind
    rules: Sequence[Rule]
    corrections: Mapping[str, ChosenCategory]
    chosen: Mapping[str, ChosenCategory]  # of single bookings by id
    split: Collection[str] = ()  # those of them whose category is that of their largest part, and their leaf, too

    @classmethod
    def of_user(cls, session: Session, user_id: str) -> "Derivation":
        """The derivation with what the store has now."""
        parts = annotations.largest_parts(session, user_id)
        owned = accounts.every(session, user_id)
        return cls(
            own_ibans={iban: each.kind for each in owned for iban in each.named_ibans},
            kinds={each.id: each.kind for each in owned},
            rules=rules.of_user(session, user_id),
            corrections=rules.corrections(session, user_id),
            chosen={**annotations.choices(session, user_id), **parts},
            split=parts.keys(),
        )

    def derive(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the columns DERIVED and `search_text`. Takes SAID; other columns stay."""
        classified = classify(
            self._readable(rows), own_ibans=self.own_ibans, rules=self.rules, corrections=self.corrections
        )
        return with_search_text(self._as_chosen(classified.drop("account_kind")))

    def with_leaves(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the columns LEAF: a finer category below the row's `category` and the rule behind it, null
        where none is known. Takes SAID, `category`, `category_rule` and `transfer_account_id`."""
        given = with_leaves(self._readable(rows), own_ibans=self.own_ibans, rules=self.rules)
        is_paired = (pl.col("category_rule") == OWN_ACCOUNT_RULE) & pl.col("transfer_account_id").is_not_null()
        between = given.with_columns(
            detailed_category=pl.when(is_paired).then(_leaf_between(self.kinds)).otherwise("detailed_category"),
            detailed_rule=pl.when(is_paired).then(pl.lit(OWN_ACCOUNT_RULE)).otherwise("detailed_rule"),
        )
        categories = {code: leaf.category for code, leaf in LEAVES.items()}
        is_below = pl.col("detailed_category").replace_strict(categories, default=None) == pl.col("category")
        return between.with_columns(pl.when(is_below).then(pl.col(name)).alias(name) for name in LEAF)

    def _readable(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with the columns of CLASSIFIABLE."""
        kind = pl.col("account_id").replace_strict(self.kinds, default=None, return_dtype=pl.String)
        return rows.with_columns(merchant_name="source_merchant_name", account_kind=kind)

    def _as_chosen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows, with the user's choice for a single booking in place of what rules say; if the user chose no finer
        category, it is derived below the chosen category."""
        about = rows.filter(pl.col("id").is_in(list(self.chosen))) if self.chosen else rows.clear()
        if about.is_empty():
            return rows
        choices = [self.chosen[id_] for id_ in about["id"]]
        said = about.with_columns(
            pl.Series("category", [choice.category for choice in choices], dtype=pl.String),
            pl.Series(OWN, [choice.own_category_id for choice in choices], dtype=pl.String),
            category_rule=pl.lit(CHOSEN),
            transfer_account_id=pl.lit(None, dtype=pl.String),
        )
        decided = self.with_leaves(said).with_columns(
            pl.Series("leaf", [choice.detailed_category for choice in choices], dtype=pl.String)
        )
        is_said = pl.col("leaf").is_not_null() | pl.col("id").is_in(list(self.split))
        decided = decided.with_columns(
            detailed_category=pl.when(is_said).then("leaf").otherwise("detailed_category"),
            detailed_rule=pl.when(is_said).then(pl.lit(CHOSEN)).otherwise("detailed_rule"),
        )
        names = ("id", "category", "category_rule", *LEAF, OWN)
        return rows.update(decided.select(names), on="id", how="left", include_nulls=True)


_SEARCH_TEXT = searchable_text(
    pl.concat_str("merchant_name", "counterpart_name", "purpose", separator="\n", ignore_nulls=True)
).alias("search_text")


def with_search_text(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with `search_text`: merchant, counterpart and purpose in the spellings that a search compares."""
    return frame_of(rows.lazy().with_columns(_SEARCH_TEXT))


def derive_again(session: Transaction, user_id: str, transaction_ids: Sequence[str] | None = None) -> pl.DataFrame:
    """Derive these stored bookings anew (None: all), by the present rules and accounts, store what differs, and give
    them the tags of the rules. Returns the rows that look different now, with SEEN and its former values as `old_...`.
    If only the rule changed and not its result, the new rule is stored and nothing is reported.

    Own transfers keep their category unless a rule of the user says otherwise.
    """
    return _derive_again(session, user_id, transaction_ids).filter(_differs(SEEN))


def _derive_again(session: Transaction, user_id: str, transaction_ids: Sequence[str] | None) -> pl.DataFrame:
    """As `derive_again`, with the rows of which only the tags differ."""
    derivation = Derivation.of_user(session, user_id)
    schema = {**SAID, "transfer_account_id": pl.String(), **{f"old_{name}": pl.String() for name in DERIVED}}
    changed = [pl.DataFrame(schema=REPORTED)]
    for condition, values in portions(session, user_id, transaction_ids):
        # Else the rest of a long history is read, too
        limit = f" LIMIT {len(transaction_ids)}" if transaction_ids is not None else ""
        stored = session.frame(
            f"SELECT {', '.join(SAID)}, transfer_account_id, {', '.join(f'{name} AS old_{name}' for name in DERIVED)}"
            f" FROM transactions WHERE user_id = $1 AND NOT is_adjusting_entry AND {condition}{limit}",
            *(user_id, *values),
            schema=schema,
        )
        derived = name_own_transfers(derivation.derive(stored), derivation.kinds)
        new = derived.filter(_differs(DERIVED))
        names = [name for name in DERIVED if new.select(_differs([name]).any()).item()]
        texts = ["search_text"] if "merchant_name" in names else []
        # The columns that stay the same would only take room in the transaction
        write(session, user_id, new.select("id", *names, *texts))
        changed.append(compact(new.filter(_differs(SEEN)).select(*REPORTED).cast(pl.Schema(REPORTED))))
        del stored, derived, new
    tagged = set(rule_tags.apply(session, user_id, derivation.rules, transaction_ids))
    only_tagged = tagged.difference(*(piece["id"] for piece in changed))
    now = ", ".join(f"{name}, {name} AS old_{name}" for name in SEEN)
    for condition, values in portions(session, user_id, list(only_tagged)):
        rows = f"SELECT id, account_id, {now} FROM transactions WHERE user_id = $1 AND {condition}"
        changed.append(session.frame(rows, user_id, *values, schema=REPORTED))
    return pl.concat(changed)


def _differs(names: Sequence[str]) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"old_{name}")) for name in names)


def apply_rules(
    session: Transaction, user_id: str, *, now: datetime, transaction_ids: Sequence[str] | None = None
) -> pl.DataFrame:
    """Derive these bookings anew (None: all), write the changes into the journal, which knows no tags, and return the
    rows of `derive_again` and those that got other tags. Holds the user."""
    session.hold(user_id)
    changed = _derive_again(session, user_id, transaction_ids)
    looks, charges = (changed.select(_differs(names)).to_series() for names in (SEEN, CHARGED))
    changes = journal.change_rows(changed["id"].filter(looks), "modified")
    journal.record(
        session,
        user_id=user_id,
        job_id="rules",
        changes=changes,
        now=now,
        changes_charges=bool(charges.any()),
    )
    return changed


def name_own_transfers(rows: pl.DataFrame, kinds: Mapping[str, str | None]) -> pl.DataFrame:
    """The rows, in which those with a `transfer_account_id` have the category TRANSFER, or SAVINGS if either side is a
    savings account, with a finer category by the kinds of both accounts, unless the user has decided otherwise."""
    savings = [id_ for id_, kind in kinds.items() if kind in SAVINGS_KINDS]
    rule = pl.col("category_rule").fill_null("")
    by_user = rule.str.starts_with("user-rule") | rule.str.starts_with("correction") | (rule == CHOSEN)
    is_own = pl.col("transfer_account_id").is_not_null() & ~by_user
    is_savings = pl.col("account_id").is_in(savings) | pl.col("transfer_account_id").is_in(savings)
    category = pl.when(is_savings).then(pl.lit("SAVINGS")).otherwise(pl.lit("TRANSFER"))
    return rows.with_columns(
        category=pl.when(is_own).then(category).otherwise("category"),
        category_rule=pl.when(is_own).then(pl.lit(OWN_ACCOUNT_RULE)).otherwise("category_rule"),
        detailed_category=pl.when(is_own).then(_leaf_between(kinds)).otherwise("detailed_category"),
        detailed_rule=pl.when(is_own).then(pl.lit(OWN_ACCOUNT_RULE)).otherwise("detailed_rule"),
    )


def _leaf_between(kinds: Mapping[str, str | None]) -> pl.Expr:
    """The finer category of an own transfer, by the kinds of both accounts, as an expression."""
    sides = [pl.col(name).replace_strict(kinds, default=None, return_dtype=pl.String) for name in ACCOUNTS]
    leaf = pl.lit(OWN_TRANSFER)
    for kind, of_kind in reversed(OF_KINDS.items()):
        leaf = pl.when(pl.any_horizontal(side == kind for side in sides)).then(pl.lit(of_kind)).otherwise(leaf)
    return leaf


def write(session: Transaction, user_id: str, changed: pl.DataFrame, *, table: str = "transactions") -> None:
    """Set the columns of `changed` on the user's rows with these ids, in `transactions` or another table of bookings.
    The caller declares the change (`Session.changes`)."""
    if changed.is_empty():
        return
    names = [name for name in changed.columns if name != "id"]
    assignments = ", ".join(f"{name} = changed.{name}" for name in names)
    with session.stage("changed", changed):
        session.execute(
            f"UPDATE {table} SET {assignments} FROM changed WHERE {table}.user_id = $1 AND {table}.id = changed.id",
            user_id,
        )
