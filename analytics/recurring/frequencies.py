"""The frequencies of recurring payments, and which of the interface's five words (2.10) says each of them.

Another one needs a row in each table here, a lattice in `rhythm.py` and a rule of evidence in `evidence.py`; and one
that has a word of its own, that word in the contract.
"""

from typing import Literal

Unit = Literal["day", "week", "month"]

TWICE_MONTHLY = "twice_monthly"

CHARGES_A_YEAR = {
    "weekly": 52,
    "biweekly": 26,
    TWICE_MONTHLY: 24,
    "monthly": 12,
    "two_monthly": 6,
    "quarterly": 4,
    "half_yearly": 2,
    "yearly": 1,
}

SAID_AS = {
    **{name: name for name in CHARGES_A_YEAR},
    TWICE_MONTHLY: "biweekly",
    "two_monthly": "quarterly",
    "half_yearly": "yearly",
}
"""The word of the interface for each frequency: its own, else that of the nearest number of charges a year."""

OVER_AFTER = {
    "weekly": (0, 15),
    "biweekly": (0, 29),
    TWICE_MONTHLY: (1, 1),
    "monthly": (2, 1),
    "two_monthly": (4, 1),
    "quarterly": (6, 1),
    "half_yearly": (12, 1),
    "yearly": (24, 1),
}
"""The months and days after its latest charge after which a payment is over: two periods and a day (decision 21)."""

PERIOD_DAYS = {
    "weekly": 7.0,
    "biweekly": 14.0,
    TWICE_MONTHLY: 15.22,
    "monthly": 30.44,
    "two_monthly": 60.9,
    "quarterly": 91.3,
    "half_yearly": 182.6,
    "yearly": 365.25,
}
"""The average number of days between two charges."""

RHYTHMS: dict[str, tuple[tuple[int, Unit], ...]] = {  # several kinds of month count as monthly (rhythm.py)
    "weekly": ((1, "week"),),
    "biweekly": ((2, "week"),),
    TWICE_MONTHLY: ((1, "month"),),  # on two days of it
    "monthly": ((1, "month"), (28, "day"), (30, "day")),
    "two_monthly": ((2, "month"),),
    "quarterly": ((3, "month"),),
    "half_yearly": ((6, "month"),),
    "yearly": ((12, "month"),),
}
"""The rhythms of each frequency: every so many units."""

GRACE_DAYS = {
    "weekly": 3,
    "biweekly": 4,
    TWICE_MONTHLY: 4,
    "monthly": 5,
    "two_monthly": 6,
    "quarterly": 8,
    "half_yearly": 12,
    "yearly": 18,
}
"""The number of days that a charge may be late before it counts as missed: the tolerances of
analytics/recurring/rhythm.py, rounded up."""
