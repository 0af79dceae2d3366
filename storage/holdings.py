"""Counts and sums of a store's contents, which an upgrade must not change."""

from storage.database import Row, Session

COUNTED = ("users", "connections", "accounts", "transactions", "pending_transactions", "statements")


def holdings(session: Session) -> list[Row]:
    """The number of rows in each table of COUNTED, then the sum of all booked transactions of each currency, as rows of
    `what` (the table's name or the currency) and `figure`."""
    counts = []
    for name in COUNTED:
        [found] = session.rows(f"SELECT count(*) AS number FROM {name}")
        counts.append({"what": name.replace("_", " "), "figure": found["number"]})
    sums = session.rows(
        "SELECT currency AS what, sum(amount) AS figure FROM transactions GROUP BY currency ORDER BY currency"
    )
    return counts + sums
