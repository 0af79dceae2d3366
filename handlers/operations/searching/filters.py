"""Turns the parameters of a list, a search or an export into a selection of rows; no other place does."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from analytics.classification.facts import CATEGORIES, TYPES
from analytics.searching.filters import Direction, Flag, Query, query_words
from auth.principal import Principal
from handlers.operations.categories.finer import leaf_filter
from handlers.operations.selection import check_window, listed_values
from handlers.operations.words.row_words import check_words
from handlers.web.errors import BadRequest
from handlers.work.cache.user_data import UserData
from storage.accounts import SelectedAccounts
from storage.transactions import Selection

Status = Literal["booked", "pending", "all"]


class Filters(Struct, kw_only=True):
    """The parameters of an operation that choose rows, as they were sent; each operation has some of them."""

    account_ids: str | None = None
    category: str | None = None
    date_from: date | None = None
    date_to: date | None = None
    search: str | None = None
    type: str | None = None
    amount_min: str | None = None
    amount_max: str | None = None
    direction: Direction | None = None
    categories: str | None = None
    types: str | None = None
    merchant: str | None = None
    counterpart_iban: str | None = None
    words: str | None = None
    status: Status = "booked"
    flag: Flag | None = None
    counted: bool = False
    tag: str | None = None
    detailed_category: str | None = None
    own_category: str | None = None
    search_in: Literal["annotation"] | None = None

    @property
    def needs_words(self) -> bool:
        """Whether bookings are chosen by what the user says of them: by a tag or an own category, or a search in it."""
        return (self.tag, self.own_category, self.search_in) != (None, None, None)

    @property
    def amounts(self) -> tuple[Decimal | None, Decimal | None]:
        """The smallest and the largest amount, without sign; None where there is no bound."""
        smallest, largest = (Decimal(text) if text else None for text in (self.amount_min, self.amount_max))
        return smallest, largest

    def check(self, caller: Principal, include: str | None = None) -> None:
        """Raise BadRequest for days in the wrong order, and Forbidden for annotations (in `include` or as a filter)
        that the caller may not read."""
        check_window(self.date_from, self.date_to)
        check_words(caller, include, self.tag, self.own_category, self.search_in)

    def selection(self, selected: SelectedAccounts, caller: Principal) -> Selection:
        """The part of the filters that the store applies when it reads rows; a word to search for is only looked up as
        a part of the text, and `query` checks that a word begins with it. Raises BadRequest."""
        texts = self.search or ""
        alternatives = query_words(self.words or "")
        if len(alternatives) == 1:  # of several none has to be there
            texts = " ".join([texts, *alternatives[0]])
        return Selection(
            account_ids=selected.filter,
            category=self.category,
            detailed_category=leaf_filter(self.detailed_category, caller),
            date_from=self.date_from,
            date_to=self.date_to,
            search=texts or None,
            type=self.type,
        )

    def ids(self, reading: UserData, caller: Principal, selection: Selection | None = None) -> Sequence[str] | None:
        """The ids, in no order, of the bookings with this tag and in this own category; None if neither is given. A
        booking that is divided into parts only counts if one of its parts is in the own category and in the category
        and finer category of `selection`. Raises BadRequest for an own category that the caller does not know."""
        if (self.tag, self.own_category) == (None, None):
            return None
        words = reading.words
        tagged = words.with_tag(self.tag) if self.tag is not None else list(words.accounts)
        if self.own_category is None:
            return tagged
        within = words.in_own(self.own_category)
        is_seen = caller.is_whole or any(caller.covers(words.accounts[id_]) for id_ in within)
        if self.own_category not in words.own or not is_seen:
            raise BadRequest("ownCategory: must be an id that GET /categories lists")
        places = (selection.category, selection.detailed_category) if selection is not None else ()
        return [*set(words.in_own(self.own_category, *places)).intersection(tagged)]

    def query(self) -> Query:
        """The part of the filters that is applied to the rows once they are read. Raises BadRequest for unknown values,
        and for bounds in the wrong order."""
        smallest, largest = self.amounts
        if smallest is not None and largest is not None and smallest > largest:
            raise BadRequest("amountMin: must not be more than amountMax")
        return Query(
            amount_min=smallest,
            amount_max=largest,
            direction=self.direction,
            categories=listed_values("categories", self.categories, CATEGORIES),
            types=listed_values("types", self.types, TYPES),
            merchant=self.merchant,
            counterpart_iban=self.counterpart_iban,
            words=query_words(self.words or ""),
            flag=self.flag,
            counted=self.counted,
            category=self.category,
            detailed_category=self.detailed_category,
            own_category=self.own_category,
        )
