"""Turns the parameters of a search into a selection of rows; no other place does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal

from analytics.classification.facts import CATEGORIES, TYPES
from analytics.searching.filters import Direction, Flag, Query, query_words
from auth.principal import Principal
from handlers.http.errors import BadRequest
from handlers.operations.categories.finer import filtered_by
from handlers.operations.selection import check_window, listed, selected_or_all
from storage.accounts import Selected, StoredAccount
from storage.transactions import Selection

Status = Literal["booked", "pending", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The parameters that GET /transactions/search shares with every other answer about the same rows."""

    account_ids: str | None
    category: str | None
    date_from: date | None
    date_to: date | None
    search: str | None
    amount_min: str | None
    amount_max: str | None
    direction: Direction | None
    categories: str | None
    types: str | None
    merchant: str | None
    counterpart_iban: str | None
    words: str | None
    status: Status
    flag: Flag | None
    counted: bool
    tag: str | None = None
    detailed_category: str | None = None
    own_category: str | None = None

    def selected(self, everything: Sequence[StoredAccount], caller: Principal) -> Selected:
        """The accounts that the filters name, or all that the caller may see if they name none."""
        return selected_or_all(everything, self.account_ids, caller)

    def selection(self, selected: Selected, caller: Principal) -> Selection:
        """The part of the filters that the store applies when it reads rows; a word to search for is only looked up as
        a part of the text, and `query` checks that a word begins with it. Raises BadRequest."""
        check_window(self.date_from, self.date_to)
        texts = " ".join([self.search or "", *query_words(self.words or "")]).strip()
        return Selection(
            account_ids=selected.filter,
            category=self.category,
            detailed_category=filtered_by(self.detailed_category, caller),
            date_from=self.date_from,
            date_to=self.date_to,
            search=texts or None,
        )

    def query(self) -> Query:
        """The part of the filters that is applied to the rows once they are read. Raises BadRequest."""
        smallest, largest = (Decimal(text) if text else None for text in (self.amount_min, self.amount_max))
        if smallest is not None and largest is not None and smallest > largest:
            raise BadRequest("amountMin: must not be more than amountMax")
        return Query(
            amount_min=smallest,
            amount_max=largest,
            direction=self.direction,
            categories=listed("categories", self.categories, CATEGORIES),
            types=listed("types", self.types, TYPES),
            merchant=self.merchant,
            counterpart_iban=self.counterpart_iban,
            words=query_words(self.words or ""),
            flag=self.flag,
            counted=self.counted,
            category=self.category,
            detailed_category=self.detailed_category,
            own_category=self.own_category,
        )
