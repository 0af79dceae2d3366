"""The data of one user in one state: accounts, bookings, answers. They are completed, and never changed."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import date
from enum import Flag, auto
from typing import Any

import orjson
import polars as pl
from msgspec.structs import replace

from analytics.classification.rules import Rule
from analytics.frames import BOOKINGS
from analytics.searching.parts import NO_PARTS
from handlers.web.request import Answer
from handlers.work.cache.entries import Entries, Render, Shown, fit_copy, frame_bytes, with_leaf
from storage.accounts import StoredAccount
from storage.annotations.annotation import OwnWords
from storage.changes.first_answers import NEWEST_MAX, FirstAnswers, Newest, Recurring
from storage.connections import Status
from storage.database import Row
from storage.transactions import Selection, for_search

ANSWERS_MAX = 1_000  # of one user; the oldest go first
ANSWERS_BYTES_MAX = 2**21
ASKED_MAX = 100  # requests of one user that are remembered without their answers
ASKED_BYTES = 100  # of each
ANSWER_OVERHEAD_BYTES = 1_000
LINE_BYTES = 1_200  # of each of the newest bookings in a user's first answers
WORDS_BYTES = 2_000  # of the words on one booking, a generous estimate
BASE_BYTES = 4_000 + ASKED_MAX * ASKED_BYTES  # counted from the start, so that new requests need no new weighing


class Need(Flag):
    """The parts of a user's data. Each is a query of its own, and most operations need one or two besides the
    accounts."""

    ACCOUNTS = 0  # always there
    STATUSES = auto()  # the states of connections
    RULES = auto()  # the user's own ones
    WORDS = auto()  # the user's words on single bookings
    FIGURES = auto()  # the columns of bookings that figures count
    LIST = auto()  # the columns of bookings that lists, searches and figures read
    DETAILS = auto()  # everything else that is shown of a single booking; goes with LIST
    PENDING = auto()  # what is not booked yet


OF_BOOKINGS = Need.FIGURES | Need.LIST | Need.DETAILS | Need.PENDING
PART_OF = {
    "statuses": Need.STATUSES,
    "own_rules": Need.RULES,
    "words": Need.WORDS,
    "figures": Need.FIGURES,
    "entries": Need.LIST,
    "waiting": Need.PENDING,
}
"""The part to which each attribute belongs."""
SHORT_HISTORY = 10_000  # bookings whose details all stay in memory


class NotLoaded(Exception):
    """A part of the user's data was read that is not in memory."""

    def __init__(self, need: Need) -> None:
        super().__init__(need)
        self.need = need


class UserData:
    """One user's accounts, and the parts that somebody has needed so far (`loaded`); the attribute of any other part
    raises NotLoaded. `state` is the number of the state that they belong to, None if there is no such user. Only data
    that are whole (`is_whole`) may be kept in a cache."""

    statuses: Mapping[str, Status]  # of connections by id
    own_rules: Sequence[Rule]  # of classification
    words: OwnWords
    figures: pl.DataFrame  # analytics.frames.COUNTED, of all accounts
    entries: Entries  # of LIST, and of DETAILS
    waiting: pl.DataFrame  # of PENDING: storage.transactions.KEPT

    def __init__(
        self, *, state: int | None, home_currency: str, accounts: Sequence[StoredAccount], is_whole: bool = True
    ) -> None:
        self.state = state  # None: there is no such user
        self.home_currency = home_currency
        self.accounts = [account for account in accounts if not account.is_hidden]
        self.hidden = [account.id for account in accounts if account.is_hidden]
        self.by_id = {account.id: account for account in self.accounts}
        self.is_whole = is_whole  # only such data are kept
        self.loaded = Need.ACCOUNTS
        self.parts = NO_PARTS  # analytics.searching.parts.PARTS
        self.has_parts: bool | None = None  # None: not known
        self._first: FirstAnswers | None = None
        self._newest: Newest | None = None
        self._bookings_state: int | None = None  # None: not known
        self._render: Render | None = None
        self.alone: Row | None = None  # a single booking, read by itself; others are not there then
        self._asked_alone = 0  # single bookings, while no others are in memory
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._answer_bytes = self._loaded_bytes = 0
        self._asked: set[int] = set()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The approximate memory that all of it takes, in bytes; computed for every new answer."""
        of_entries = self.entries.size if Need.LIST in self.loaded else 0
        known = self._newest
        newest = LINE_BYTES * min(len(known), NEWEST_MAX) if known is not None else 0
        return BASE_BYTES + newest + 500 * len(self.accounts) + of_entries + self._loaded_bytes + self._answer_bytes

    def __getattr__(self, name: str) -> Any:
        if name in PART_OF:
            raise NotLoaded(PART_OF[name])
        raise AttributeError(name)

    def begin_with(self, first: FirstAnswers, render: Render) -> None:
        """Take what a user's first answers say of connections and bookings."""
        self._newest, self._render = first.newest, render  # until the others are there
        self._bookings_state = first.bookings_state
        self._first, self.statuses, self.has_parts = replace(first, newest=None), first.statuses, first.has_parts
        self.now_has(Need.STATUSES)

    def keep_bookings_of(self, former: "UserData") -> None:
        """Take the bookings that are loaded in data of an earlier state, if none has changed since."""
        if self._bookings_state is None or self._bookings_state != former._bookings_state:
            return
        kept = former.loaded & OF_BOOKINGS
        if Need.LIST in kept:
            self.entries = former.entries.of_accounts(self.by_id)
        if Need.FIGURES in kept:
            self.figures = former.figures
        if Need.PENDING in kept:
            self.waiting = former.waiting
        self.parts, self.has_parts = former.parts, former.has_parts
        self.now_has(kept)

    def without_bookings(self) -> "UserData":
        """New data of the same state, with the accounts and what first answers say of them, which are not whole."""
        accounts = self.accounts
        other = UserData(state=self.state, home_currency=self.home_currency, accounts=accounts, is_whole=False)
        other.hidden = self.hidden
        if self._first is not None and self._render is not None:
            other.begin_with(self._first, self._render)
        return other

    def reads_alone(self) -> bool:
        """Whether a single booking is read by itself: where there are very many; and the first one, while no others are
        in memory."""
        if Need.LIST in self.loaded:
            return len(self.entries) > SHORT_HISTORY and not self.entries.has_details
        self._asked_alone += 1
        return self._asked_alone == 1 or self.number > SHORT_HISTORY

    @property
    def number(self) -> int:
        """How many bookings there are, as first answers say; 0 where these are missing."""
        return len(self._newest) if self._newest is not None else 0

    @property
    def recurring(self) -> Recurring | None:
        """The recurring payments of all accounts, as first answers tell them; None where they do not."""
        return self._first.recurring if self._first is not None else None

    def find(self, id_: str) -> Row | None:
        """The booking with this id, with all its details; None where there is none, or its account is hidden. It was
        read by itself, or with those of DETAILS."""
        if Need.DETAILS in self.loaded:
            return self.entries.find(id_)
        return self.alone if self.alone is not None and self.alone["account_id"] in self.by_id else None

    def has(self, needs: Need) -> bool:
        """Whether all of these parts are loaded."""
        return needs in self.loaded

    def now_has(self, needs: Need) -> None:
        """Note that these parts have been loaded, and estimate anew the memory that all loaded parts take."""
        self.loaded |= needs
        if Need.LIST in needs:
            self._newest = None
        frames = [] if self.parts.is_empty() else [self.parts]
        if Need.PENDING in self.loaded:
            frames.append(self.waiting)
        if Need.FIGURES in self.loaded and Need.LIST not in self.loaded:  # else its columns are those of the entries
            frames.append(self.figures)
        words = len(self.words.by_id) + len(self.words.owned) if Need.WORDS in self.loaded else 0
        self._loaded_bytes = sum(map(frame_bytes, frames)) + WORDS_BYTES * words

    def answer(self, key: Hashable) -> Answer | None:
        """The answer that was given to the same request in this state; None where there is none."""
        return self._answers.get(key)

    def note_asked(self, key: Hashable) -> bool:
        """Remember a request, and return whether it was remembered already, among up to a hundred. The caller keeps an
        answer that is quickly made only then: most pages are read once, and memory that was not used recently is slower
        than making the answer again."""
        asked = hash(key)
        if asked in self._asked:
            return True
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked.add(asked)
        return False

    def keep_answer(self, key: Hashable, answer: Answer) -> None:
        """Keep an answer, whose body has to be bytes, unless one is kept for this key already; the oldest ones are
        dropped if there are too many, or too many bytes."""
        assert isinstance(answer.body, bytes), "only finished bytes are kept"
        answer = replace(answer, body=fit_copy(answer.body))
        size = len(answer.body) + ANSWER_OVERHEAD_BYTES
        with self._lock:
            if key in self._answers:
                return
            self._answers[key] = answer
            self._answer_bytes += size
            while len(self._answers) > ANSWERS_MAX or self._answer_bytes > ANSWERS_BYTES_MAX:
                _, dropped = self._answers.popitem(last=False)
                self._answer_bytes -= len(dropped.body) + ANSWER_OVERHEAD_BYTES

    def page(
        self, selection: Selection, *, limit: int, offset: int, leaf: Shown | None = None
    ) -> tuple[int, list[bytes]]:
        """The number of rows in the selection, and the JSON of those on one page (`limit` rows from row `offset` on),
        with finer categories as `leaf` shows them; without `leaf`, without finer categories."""
        known = self._newest  # another thread may let go of it
        first = known.page(selection, limit=limit, offset=offset) if known is not None else None
        if first is not None and self._render is not None:
            total, newest = first
            rows = [orjson.dumps(self._render(row, self.by_id)) for row in newest]
            codes = [row["detailed_category"] for row in newest]
        else:
            total, positions = self.entries.page(selection, limit=limit, offset=offset)
            rows = self.entries.json(positions)
            codes = self.entries.leaves(positions) if leaf is not None else []
        if leaf is None:
            return total, rows
        return total, [with_leaf(row, leaf(code)) for row, code in zip(rows, codes, strict=True)]

    @property
    def flows(self) -> pl.DataFrame:
        """What a cashflow by month is counted from: the columns of analytics.frames.COUNTED that it reads, of the
        figures or, where these are not loaded, of sums by month."""
        known = self._newest
        sums = known.sums if known is not None and Need.FIGURES not in self.loaded else None
        return sums if sums is not None else self.figures

    @property
    def spendings(self) -> pl.DataFrame:
        """The same for what is counted by category; a booking with parts counts by them."""
        return self.flows if self.has_parts is False else self.figures

    def figures_since(self, first: date) -> pl.DataFrame:
        """What is counted from the bookings of this day and later ones: of `figures` the rows of these days, and of
        earlier ones at least those that show what a refund is."""
        known = self._newest
        recent = None
        if known is not None and known.since is not None and known.since <= first and Need.FIGURES not in self.loaded:
            recent = known.recent
        return recent if recent is not None else self.figures

    def search_rows(self, selection: Selection, *, pending: bool = False) -> pl.DataFrame:
        """The booked rows of the selection as analytics.frames.SEARCHED with the places (`kept_at`) by which `listed`
        finds them; with `pending`, its pending rows instead."""
        if not pending:
            return self.entries.search_rows(selection)
        return for_search(self.waiting.with_row_index("kept_at").filter(selection.expression()), pending=True)

    @property
    def pending(self) -> pl.DataFrame:
        """The pending rows of all accounts that are not hidden, with the columns of BOOKINGS."""
        return self.waiting.select(*BOOKINGS)

    def listed(self, places: Iterable[int], *, pending: bool = False, leaf: Shown | None = None) -> Mapping[int, bytes]:
        """The JSON of the booked (or pending) rows at these places of `search_rows` as `page` gives it, by place."""
        found = sorted(places)
        if pending:
            rows = self.waiting[found].rows(named=True)
            shown = [orjson.dumps(self.entries.render(row, self.by_id)) for row in rows]
            codes = [row["detailed_category"] for row in rows]
        else:
            shown = self.entries.json(found)
            codes = self.entries.leaves(found) if leaf is not None else []
        if leaf is not None:
            shown = [with_leaf(json, leaf(code)) for json, code in zip(shown, codes, strict=True)]
        return dict(zip(found, shown, strict=True))

    def rows_by_id(self, ids: Iterable[str], *, pending: bool = False) -> Mapping[str, Row]:
        """The booked rows with these ids, with the columns of a list, by id; KeyError for an unknown id. With
        `pending`, the pending rows instead, without unknown ids."""
        if pending:
            rows = self.waiting.filter(pl.col("id").is_in(list(ids)))
        else:
            rows = self.entries.rows[[self.entries.places[id_] for id_ in ids]]
        return {row["id"]: row for row in rows.iter_rows(named=True)}
