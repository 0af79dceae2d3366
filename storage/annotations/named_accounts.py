"""The accounts that lines of an export name: by IBAN, or where they have none, by their latest bookings.

A key without an IBAN is often no more than the name of a bank or of a format, which other accounts have, too, and the
id is made of it. So an account without an IBAN is the one here that has all the bookings that the line states of it.
"""

from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from functools import cache

from storage import accounts
from storage.annotations import anchors
from storage.annotations.word_lines import Json, money
from storage.database import Session

BOOKINGS_STATED = 5

Bookings = tuple[tuple[date, Decimal], ...]


class NamedAccounts:
    """The accounts of one user, of which lines say something."""

    def __init__(self, session: Session, user_id: str) -> None:
        self._session, self._user_id = session, user_id
        self.owned = {each.id: each for each in accounts.every(session, user_id)}
        self._whose = anchors.accounts_of(session, user_id)
        self._latest = cache(self._read_latest)
        self._having = cache(self._find_having)

    def members(self, id_: str) -> Json:
        """The members that name an account, or the one that it has become a part of."""
        account = self.owned.get(self._whose.get(id_, id_))
        if account is None:
            return {"id": id_}
        named = {"id": account.id, "iban": account.iban, "key": account.stable_key, "currency": account.currency}
        return named if account.iban else {**named, "bookings": self._latest(account.id)}

    def find(self, named: Json) -> str | None:
        """The id of the account here that these members name; None where none is known to be it. Raises
        word_lines.CANNOT_BE_READ."""
        id_, stated = str(named["id"]), named.get("bookings")
        if named.get("iban"):
            return self._whose.get(anchors.by_number(str(named["iban"]), str(named["currency"])))
        if stated:
            bookings = tuple((date.fromisoformat(day), money(amount)) for day, amount in stated[:BOOKINGS_STATED])
            return self._having(bookings, str(named["currency"]))
        return self._whose.get(id_)

    def find_or_stand_in(self, named: Json) -> str:
        """The same; where it is not here yet, a stand-in made of its number, by which words wait for it."""
        found, number = self.find(named), named.get("iban") or named.get("key")
        if found is not None or number is None:
            return found or str(named["id"])
        return anchors.by_number(str(number), str(named["currency"]))

    def _read_latest(self, account_id: str) -> list[tuple[str, str]]:
        rows = self._session.rows(
            "SELECT booking_date, amount FROM transactions WHERE user_id = $1 AND account_id = $2"
            f" AND NOT is_adjusting_entry ORDER BY booking_date DESC, id LIMIT {BOOKINGS_STATED}",
            *(self._user_id, account_id),
        )
        return [(row["booking_date"].isoformat(), f"{row['amount']:f}") for row in rows]

    def _find_having(self, bookings: Bookings, currency: str) -> str | None:
        """The only account of this currency that has all these bookings."""
        rows = self._session.rows(
            "SELECT account_id, booking_date, amount FROM transactions WHERE user_id = $1"
            " AND booking_date = ANY($2::DATE[]) AND NOT is_adjusting_entry",
            *(self._user_id, [day for day, _ in bookings]),
        )
        here: dict[str, Counter[tuple[date, Decimal]]] = defaultdict(Counter)
        for row in rows:
            here[row["account_id"]][row["booking_date"], row["amount"]] += 1
        wanted = Counter(bookings)
        found = [id_ for id_, each in self.owned.items() if each.currency == currency and wanted <= here[id_]]
        return found[0] if len(found) == 1 else None
