"""Transfers between accounts of one user: which bookings are transfers, and which two of them are one transfer
(decision 14)."""

from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import product

import polars as pl

from analytics.frames import MONEY, among, columns

DAYS_APART_MAX = 4  # decision 14
DAYS_APART = sorted(range(-DAYS_APART_MAX, DAYS_APART_MAX + 1), key=lambda days: (abs(days), -days))
"""The possible numbers of days from leaving to arriving, the nearest first; of two equally near, the later arrival."""

NO_SILENT_LEG = ("cash_withdrawal", "cash_deposit", "card_payment", "fee", "interest", "salary")
"""Types that say where money went or came from, so that a booking without an own account's IBAN is no transfer."""

SETTLEMENT = "CARD_SETTLEMENT"  # the leaf of a payment that settles a credit card
CARD, PAYING = "credit_card", ("checking", "other")  # kinds of accounts: of a card, and those that may settle it

BY_IBAN = "counterpart_iban_is_own_account"
BY_OTHER_LEG = "counterpart_iban_of_other_leg"
BY_AMOUNT = "only_opposite_amount_within_4_days"
BY_SETTLEMENT = "card_settlement_within_4_days"
BY_EXCHANGE = "exchange_at_one_bank_on_one_day"

FEE_SHARE_MAX = Decimal("0.1")  # of what left one account and did not arrive on the other

EXCHANGE_WORDS = (  # parts of words by which banks and wallets call an exchange of currencies, in lower case
    *("umrechnung", "währungstausch", "umtausch", "devisen", "exchange", "conver", "valutawissel", "omrekening"),
    *("change de devise", "cambio", "wymiana", "przewalutowanie", "växling", "veksling"),
)

EVIDENCE = (  # columns of the leaving and the arriving leg that have to be equal, the best evidence first
    (("account_id", "target"), ("target", "account_id")),
    (("target",), ("account_id",)),
    (("account_id",), ("target",)),
)

_PAIRS = columns("out_id, in_id, out_account, in_account, transfer_fee")


def pair(legs: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """The own transfers, one row per booking, by id: id, transfer_account_id (the own account on the other side),
    transfer_id (the other leg, null while it has not arrived), transfer_rule, transfer_fee (what a leaving leg lost on
    its way). Takes LEGS and OWN_ACCOUNTS.

    A row whose counterpart IBAN is another own account is one, whether its other leg is there or not. Two legs are one
    transfer when their amounts are opposite, their currency is the same and at most 4 days lie between them: first
    those whose IBANs say so, one to one, then settlements of own credit cards, which name the card company's IBAN, then
    those without IBANs; of the last two, those that are each other's only candidate. Two that name each other may also
    be in two currencies, or differ by a fee. An exchange of currencies at one bank is one as well. No other row whose
    counterpart IBAN is foreign is a leg, and neither is cash, a card payment, a fee, interest or a salary without an
    own IBAN. Pure: after an import it runs again over all rows of the user.
    """
    rows = _candidates(legs, accounts)
    said = _said_by_iban(rows.filter(~pl.col("is_settlement")))
    is_between = (pl.col("target") != pl.col("account_id")) | _is_leg_of(said)
    rows = rows.with_columns(pl.when(is_between).then("target").alias("target"))
    settled = _settlements(rows.filter(~_is_leg_of(said)))
    silent = rows.filter(~pl.col("is_settlement"), ~_is_leg_of(said), ~_is_leg_of(settled), pl.col("target").is_null())
    exchanged = _exchanges(silent.filter("is_exchange"))
    pairs = pl.concat([said, settled, exchanged, _only_opposites(silent.filter(~_is_leg_of(exchanged)))])
    rule = (
        pl.when(pl.col("target").is_not_null())
        .then(pl.lit(BY_IBAN))
        .when(_is_leg_of(said))
        .then(pl.lit(BY_OTHER_LEG))
        .when(_is_leg_of(settled))
        .then(pl.lit(BY_SETTLEMENT))
        .when(_is_leg_of(exchanged))
        .then(pl.lit(BY_EXCHANGE))
        .otherwise(pl.lit(BY_AMOUNT))
    )
    return (
        rows.join(_both_legs(pairs), on="id", how="left", maintain_order="left")
        .with_columns(pl.coalesce("target", "other_account_id").alias("transfer_account_id"))
        .filter(pl.col("transfer_account_id").is_not_null())
        .select("id", "transfer_account_id", "transfer_id", rule.alias("transfer_rule"), "transfer_fee")
    )


def is_within(selection: Collection[str]) -> pl.Expr:
    """Whether a row is one of two legs that are both there, on two accounts of the selection, so that no money entered
    or left it. A row whose other leg has not arrived changed the selection's balance, so it is none (decision 14)."""
    return pl.col("transfer_id").is_not_null() & pl.col("transfer_account_id").is_in(among(selection))


def _candidates(legs: pl.DataFrame, accounts: pl.DataFrame) -> pl.DataFrame:
    """The rows that may be a leg, by id, with `kind` and `bank_name` of their account, and with `target`: the own
    account with the counterpart IBAN, null where there is no IBAN. The account's own IBAN, which some banks write
    beside fees and interest, counts as none, unless the account has several; where accounts in several currencies share
    it, it names an exchange between them. The foreign IBAN of a settlement (`is_settlement`) counts as none, too.

    No leg are adjusting entries, amounts of zero, other rows with the IBAN of somebody else, and without `target` the
    types of NO_SILENT_LEG that are no settlement.
    """
    own = accounts.select(pl.col("id").alias("account_id"), _compact("iban").alias("counterpart_iban")).drop_nulls()
    of_ibans = own.group_by("counterpart_iban", maintain_order=True).agg(
        pl.col("account_id").first().alias("target"), (pl.len() > 1).alias("is_shared")
    )
    of_accounts = accounts.group_by(pl.col("id").alias("account_id")).agg(
        pl.col("kind", "bank_name").first(), (pl.len() > 1).alias("has_several")
    )
    is_foreign = pl.col("counterpart_iban").is_not_null() & pl.col("target").is_null()
    pays = (pl.col("amount") < 0) & (pl.col("kind").is_null() | pl.col("kind").is_in(PAYING))
    is_settlement = is_foreign & pays & (pl.col("detailed_category") == SETTLEMENT).fill_null(value=False)
    is_itself = pl.col("is_itself").fill_null(value=False)
    to_itself = pl.when(pl.col("has_several") & ~pl.col("is_shared")).then("account_id")
    return (
        legs.filter(~pl.col("is_adjusting_entry"), pl.col("amount") != 0)
        .select(
            *("id", "account_id", "booking_date", "amount", "currency", "type", "detailed_category", "is_exchange"),
            _compact("counterpart_iban"),
        )
        .join(of_ibans, on="counterpart_iban", how="left")
        .join(own.with_columns(is_itself=True), on=["account_id", "counterpart_iban"], how="left")
        .join(of_accounts, on="account_id", how="left")
        .with_columns(is_settlement.alias("is_settlement"))
        .filter(~is_foreign | pl.col("is_settlement"))
        .with_columns(
            pl.when(is_itself).then(to_itself).otherwise("target").alias("target"),
            (pl.col("is_exchange") | (is_itself & pl.col("is_shared"))).alias("is_exchange"),
            pl.col("amount").abs().alias("size"),
        )
        .filter(
            pl.col("target").is_not_null()
            | pl.col("is_settlement")
            | ~pl.col("type").is_in(NO_SILENT_LEG).fill_null(value=False)
        )
        .sort("id")
    )


def _compact(iban: str) -> pl.Expr:
    compact = pl.col(iban).str.replace_all(" ", "", literal=True).str.to_uppercase()
    return pl.when(compact != "").then(compact).alias(iban)


def _sides(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The legs that leave an account, and those that arrive on one."""
    return rows.filter(pl.col("amount") < 0), rows.filter(pl.col("amount") > 0)


def _largest_first(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort("size", descending=True, maintain_order=True)


def _said_by_iban(rows: pl.DataFrame) -> pl.DataFrame:
    """The pairs of legs that their IBANs show, each leg in one pair at most: by best evidence first (EVIDENCE), then by
    nearest day; last those that name each other and differ by a fee or in currency."""
    sizes = rows.filter(pl.col("target").is_not_null())["size"].unique()
    out, into = _sides(_largest_first(rows.filter(pl.col("size").is_in(among(sizes)))))
    pairs = [pl.DataFrame(schema=_PAIRS)]
    steps = [*product(EVIDENCE, [True], DAYS_APART), *product(EVIDENCE[:1], [False], DAYS_APART)]
    for (out_keys, in_keys), is_equal, days in steps:
        if out.is_empty() or into.is_empty():
            break
        if not is_equal and days == DAYS_APART[0]:
            out = _mutual_within_days(out, into)
        speaking_out, speaking_in = out.filter(_speaks(out_keys)), into.filter(_speaks(in_keys))
        if speaking_out.is_empty() or speaking_in.is_empty():
            continue
        paired = _in_order(speaking_out, speaking_in, out_keys, in_keys, days=days, is_equal=is_equal)
        out = out.filter(~pl.col("id").is_in(among(paired["out_id"])))
        into = into.filter(~pl.col("id").is_in(among(paired["in_id"])))
        pairs.append(paired)
    return pl.concat(pairs)


def _mutual_within_days(out: pl.DataFrame, into: pl.DataFrame) -> pl.DataFrame:
    """The leaving legs that have an arriving one that names their account as they name its, within DAYS_APART_MAX."""
    days = (pl.col("booking_date") + pl.duration(days=pl.col("days"))).alias("day")
    near = (
        out.filter(pl.col("target").is_not_null())
        .join(pl.DataFrame({"days": DAYS_APART}), how="cross")
        .with_columns(days)
        .join(
            into, left_on=["account_id", "target", "day"], right_on=["target", "account_id", "booking_date"], how="semi"
        )
    )
    return out.filter(pl.col("id").is_in(among(near["id"])))


def _speaks(keys: Sequence[str]) -> pl.Expr:
    """Whether a leg names the other one's account, or does not, as the keys want it. The account's own former IBAN only
    counts where both do."""
    if "target" not in keys:
        return pl.col("target").is_null()
    return pl.col("target").is_not_null() if len(keys) > 1 else pl.col("target") != pl.col("account_id")


def _in_order(
    out: pl.DataFrame, into: pl.DataFrame, out_keys: Sequence[str], in_keys: Sequence[str], *, days: int, is_equal: bool
) -> pl.DataFrame:
    """The pairs of legs of which one arrives `days` after the other left; equal transfers of one day are paired in the
    order of their ids. Unless `is_equal`, pairs in two currencies, and those of which a fee is missing, at most
    FEE_SHARE_MAX of what left; the largest of a day first."""
    same = ["currency", "size", "day", "number"] if is_equal else ["day", "number"]
    compared = [] if is_equal else ["currency", "size"]
    arriving = _numbered(into, [*in_keys, *same[:-1]], days=0).select(
        pl.col("id").alias("in_id"),
        pl.col("account_id").alias("in_account"),
        *same,
        *(pl.col(name).alias(f"{name}_in") for name in compared),
        *(pl.col(in_key).alias(f"same_{out_key}") for out_key, in_key in zip(out_keys, in_keys, strict=True)),
    )
    paired = _numbered(out, [*out_keys, *same[:-1]], days=days).join(
        arriving, left_on=[*out_keys, *same], right_on=[*(f"same_{key}" for key in out_keys), *same]
    )
    fee = pl.lit(None, dtype=MONEY)
    if not is_equal:
        lost, is_one_currency = pl.col("size") - pl.col("size_in"), pl.col("currency") == pl.col("currency_in")
        is_fee = lost.is_between(0, pl.col("size") * FEE_SHARE_MAX)
        paired = paired.filter(~is_one_currency | is_fee)
        fee = pl.when(is_one_currency & (lost > 0)).then(lost).cast(MONEY)
    names = (pl.col("id").alias("out_id"), "in_id", pl.col("account_id").alias("out_account"), "in_account")
    return paired.select(*names, fee.alias("transfer_fee"))


def _numbered(side: pl.DataFrame, keys: Sequence[str], *, days: int) -> pl.DataFrame:
    """The legs that may arrive `days` later, with that `day` and their `number` among those with the same keys."""
    return side.with_columns((pl.col("booking_date") + pl.duration(days=days)).alias("day")).with_columns(
        pl.int_range(pl.len()).over(*keys).alias("number")
    )


def _exchanges(rows: pl.DataFrame) -> pl.DataFrame:
    """The pairs of an amount that leaves an account in one currency and one that arrives in another, at one bank on one
    day, where as many leave as arrive; the largest first."""
    of_day = ["bank_name", "booking_date"]
    out, into = (
        _numbered(side, of_day, days=0).with_columns(pl.len().over(of_day).alias("legs"))
        for side in _sides(_largest_first(rows))
    )
    is_exchange = (pl.col("currency") != pl.col("currency_in")) & (pl.col("account_id") != pl.col("account_id_in"))
    return (
        out.join(into, on=[*of_day, "number", "legs"], suffix="_in")
        .filter(is_exchange)
        .select(
            *(pl.col("id").alias("out_id"), pl.col("id_in").alias("in_id")),
            *(pl.col("account_id").alias("out_account"), pl.col("account_id_in").alias("in_account")),
            transfer_fee=pl.lit(None, dtype=MONEY),
        )
    )


def _settlements(rows: pl.DataFrame) -> pl.DataFrame:
    """The pairs of a settlement and the credit on a card account that is its only opposite, and names no account but
    the one that paid."""
    if not rows["is_settlement"].any():
        return pl.DataFrame(schema=_PAIRS)
    arrives = (pl.col("kind") == CARD).fill_null(value=False) & (pl.col("amount") > 0)
    pairs = _only_opposites(rows.filter(pl.col("is_settlement") | arrives))
    named = pairs.join(rows.select("target", in_id="id"), on="in_id")
    is_right = pl.col("target").is_null() | (pl.col("target") == pl.col("out_account"))
    return named.filter(is_right).select(list(_PAIRS))


def _is_leg_of(pairs: pl.DataFrame) -> pl.Expr:
    return pl.col("id").is_in(among(pl.concat([pairs["out_id"], pairs["in_id"]])))


def _only_opposites(silent: pl.DataFrame) -> pl.DataFrame:
    """The pairs of rows that are each other's only opposite on another account; no pair where there is a choice."""
    out, into = _sides(silent)
    leaving, arriving = _only_opposite(out, into), _only_opposite(into, out)
    return leaving.join(arriving, left_on=["id", "other_id"], right_on=["other_id", "id"]).select(
        pl.col("id").alias("out_id"),
        pl.col("other_id").alias("in_id"),
        pl.col("account_id").alias("out_account"),
        pl.col("other_account_id").alias("in_account"),
        transfer_fee=pl.lit(None, dtype=MONEY),
    )


def _only_opposite(side: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The rows of a side that have exactly one opposite within 4 days, with its id and account.

    Opposites are counted by account and day first, so that a thousand equal amounts never become a million pairs.
    """
    counted = others.group_by("currency", "size", "account_id", "booking_date").agg(
        pl.len().alias("opposites"), pl.col("id").first().alias("other_id")
    )
    return (
        side.filter(pl.col("size").is_in(among(counted["size"].unique())))
        .join(pl.DataFrame({"days": DAYS_APART}), how="cross")
        .with_columns((pl.col("booking_date") + pl.duration(days="days")).alias("day"))
        .join(counted.rename({"account_id": "other_account_id", "booking_date": "day"}), on=["currency", "size", "day"])
        .filter(pl.col("account_id") != pl.col("other_account_id"))
        .group_by("id", "account_id")
        .agg(pl.col("opposites").sum(), pl.col("other_id", "other_account_id").first())
        .filter(pl.col("opposites") == 1)
    )


def _both_legs(pairs: pl.DataFrame) -> pl.DataFrame:
    """One row per leg: its id, the id and account of the other leg, and the fee, which is the leaving one's."""
    columns = ["id", "transfer_id", "other_account_id", "transfer_fee"]
    leaving = pairs.select("out_id", "in_id", "in_account", "transfer_fee")
    arriving = pairs.select("in_id", "out_id", "out_account", pl.lit(None, dtype=MONEY))
    return pl.concat(legs.rename(dict(zip(legs.columns, columns, strict=True))) for legs in (leaving, arriving))
