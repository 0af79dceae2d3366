"""Runs the product's own detector over a benchmark folder and writes its answers for that folder's scorer.

    python tests/benchmarks/recurring.py FOLDER OUT.json [--plain plain_cases.json]

FOLDER holds users.parquet (userId, asOf, ownIbans) and transactions.parquet (the interface's transaction detail).
"""

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.frames import CHARGES  # noqa: E402 - after the line above
from analytics.recurring.detection import detect  # noqa: E402
from analytics.recurring.frequencies import SAID_AS  # noqa: E402

FIELDS = {
    "userId": "user_id",
    "id": "id",
    "bookingDate": "booking_date",
    "amount": "amount",
    "currency": "currency",
    "type": "type",
    "merchantName": "merchant_name",
    "counterpartName": "counterpart_name",
    "counterpartIban": "counterpart_iban",
    "counterpartCreditorId": "creditor_id",
    "counterpartMandateReference": "mandate_reference",
    "purpose": "purpose",
    "isPotentialDuplicate": "is_potential_duplicate",
    "isAdjustingEntry": "is_adjusting_entry",
}


def charges_of(transactions: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """The transactions of the interface as the frame the detector reads; missing columns are null."""
    kinds = {ours: CHARGES[ours] for ours in FIELDS.values()}
    present = [
        column_of(transactions, theirs).cast(kinds[ours]).alias(ours)
        if theirs in transactions.columns
        else pl.lit(None, kinds[ours]).alias(ours)
        for theirs, ours in FIELDS.items()
    ]
    rows = transactions.select(*present, account_id=pl.lit("account"))
    if "ownIbans" not in users.columns:
        return rows.with_columns(transfer_account_id=pl.lit(None, pl.String)).select(CHARGES.keys())
    own = users.select(user_id="userId", counterpart_iban="ownIbans").explode("counterpart_iban").drop_nulls().unique()
    marked = own.with_columns(transfer_account_id=pl.lit("another account"))
    return rows.join(marked, on=["user_id", "counterpart_iban"], how="left").select(CHARGES.keys())


def column_of(transactions: pl.DataFrame, name: str) -> pl.Expr:
    """A column of the folder; a booking date may be a day, an instant or a text that begins with a day."""
    if name != "bookingDate":
        return pl.col(name)
    if transactions.schema[name] == pl.String:
        return pl.col(name).str.head(10).str.to_date("%Y-%m-%d")
    return pl.col(name).dt.date()


def answers(found: pl.DataFrame, user_ids: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The detector's rows in the words of the interface, per user."""
    said: dict[str, list[dict[str, Any]]] = {user: [] for user in user_ids}
    for row in found.iter_rows(named=True):
        said[row["user_id"]].append(
            {
                "merchantName": row["merchant_name"],
                "amount": float(row["amount"]),
                "currency": row["currency"],
                "frequency": SAID_AS[row["frequency"]],
                "lastCharged": row["last_charged"].isoformat(),
                "occurrences": row["occurrences"],
            }
        )
    return said


def plain_failures(path: Path) -> list[str]:
    """The plain cases that are answered wrong, each with what was said instead."""
    failures = []
    for case in json.loads(path.read_text()):
        users = pl.DataFrame(
            {"userId": ["u"], "asOf": [date.fromisoformat(case["today"])], "ownIbans": [[]]},
            schema_overrides={"ownIbans": pl.List(pl.String)},
        )
        rows = pl.from_dicts(
            [{**row, "userId": "u", "amount": float(row["amount"])} for row in case["transactions"]],
            infer_schema_length=None,
        )
        found = detect(charges_of(rows, users), users.select(user_id="userId", today="asOf"))
        wanted = case["expected"]
        said = answers(found, ["u"])["u"]
        right = (
            not said
            if wanted is None
            else len(said) == 1 and all(said[0][key] == value for key, value in wanted.items())
        )
        if not right:
            failures.append(f"{case['case']}: wanted {wanted}, said {said}")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plain", type=Path)
    arguments = parser.parse_args()
    users = pl.read_parquet(arguments.folder / "users.parquet")
    charges = charges_of(pl.read_parquet(arguments.folder / "transactions.parquet"), users)
    started = time.perf_counter()
    found = detect(charges, users.select(user_id="userId", today="asOf"))
    seconds = time.perf_counter() - started
    arguments.out.write_text(json.dumps(answers(found, users["userId"].to_list()), ensure_ascii=False, indent=1))
    print(
        f"{users.height} users, {charges.height} bookings, {found.height} recurring payments, {seconds:.2f} s",
        f"({1000 * seconds / max(users.height, 1):.1f} ms a user)",
    )
    failures = plain_failures(arguments.plain) if arguments.plain else []
    for failure in failures:
        print("plain case failed:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
