"""The frequencies: weekly, biweekly, monthly, quarterly, yearly (interface 2.10), and nothing between them.

Another one needs a word in the contract, a row in each table here, a lattice in `rhythm.py` and a rule of evidence in
`evidence.py`.
"""

from typing import Literal

Unit = Literal["day", "week", "month"]

CHARGES_A_YEAR = {"weekly": 52, "biweekly": 26, "monthly": 12, "quarterly": 4, "yearly": 1}
OVER_AFTER = {"weekly": "15d", "biweekly": "29d", "monthly": "2mo1d", "quarterly": "6mo1d", "yearly": "2y1d"}
"""The time after its latest charge at which a payment is over: two periods and a day (decision 21)."""

PERIOD_DAYS = {"weekly": 7.0, "biweekly": 14.0, "monthly": 30.44, "quarterly": 91.3, "yearly": 365.25}
"""The average number of days between two charges."""

RHYTHMS: dict[str, tuple[tuple[int, Unit], ...]] = {  # several kinds of month count as monthly (rhythm.py)
    "weekly": ((1, "week"),),
    "biweekly": ((2, "week"),),
    "monthly": ((1, "month"), (28, "day"), (30, "day")),
    "quarterly": ((3, "month"),),
    "yearly": ((12, "month"),),
}
"""The rhythms of each frequency: every so many units."""

GRACE_DAYS = {"weekly": 3, "biweekly": 4, "monthly": 5, "quarterly": 8, "yearly": 18}
"""The number of days that a charge may be late before it counts as missed: the tolerances of
analytics/recurring/rhythm.py, rounded up."""
