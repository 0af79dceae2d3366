"""What is kept of one user at one state of the data: accounts, bookings, answers. Never changed, only completed."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from analytics.classification.rules import Rule
from analytics.frames import BOOKINGS
from analytics.searching.parts import NO_PARTS
from handlers.cache.entries import Entries, Shown, fit_copy, frame_bytes, with_leaf
from handlers.http.request import Answer
from storage.accounts import StoredAccount
from storage.connections import Status
from storage.database import Row
from storage.transactions import Selection, marked
from storage.words.annotations import OwnWords

ANSWERS_MAX = 1_000  # of one user; the oldest go first
ANSWERS_BYTES_MAX = 2**21
ASKED_MAX = 100  # requests of one user that are remembered without their answers
ASKED_BYTES = 100  # of each
ANSWER_OVERHEAD_BYTES = 1_000
WORDS_BYTES = 2_000  # of what is said of one booking, generously
BASE_BYTES = 4_000 + ASKED_MAX * ASKED_BYTES  # all at once: what a user asks once makes nobody weigh again


@dataclass(frozen=True, slots=True)
class TransactionDetails:
    """What is shown of single transactions besides the list, and by what rules it was derived."""

    rows: pl.DataFrame  # storage.transactions.DETAILS, in the order of the entries
    own_rules: Sequence[Rule]


class UserData:
    """One user's accounts and, as far as somebody asked for them, everything else that operations read."""

    def __init__(self, *, state: int, home_currency: str, accounts: Sequence[StoredAccount]) -> None:
        self.state = state
        self.home_currency = home_currency
        self.accounts = [account for account in accounts if not account.is_hidden]
        self.hidden = [account.id for account in accounts if account.is_hidden]
        self.by_id = {account.id: account for account in self.accounts}
        self.is_too_large = False  # what is missing here is read from the store each time
        self.known_statuses: Mapping[str, Status] | None = None
        self.entries: Entries | None = None
        self.figures: pl.DataFrame | None = None  # analytics.frames.COUNTED
        self.details: TransactionDetails | None = None
        self.waiting: pl.DataFrame | None = None  # storage.transactions.KEPT and MARKS, of what is not booked yet
        self.known_words: OwnWords | None = None
        self.parts = NO_PARTS  # analytics.searching.parts.PARTS
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._answer_bytes = self._frame_bytes = 0
        self._asked: set[int] = set()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """About how much memory all of it takes; asked for every answer that is made."""
        of_entries = self.entries.size if self.entries is not None else 0
        words = self.known_words
        of_words = WORDS_BYTES * (len(words.by_id) + len(words.owned)) if words is not None else 0
        of_words += frame_bytes(self.parts)
        return BASE_BYTES + 500 * len(self.accounts) + of_words + of_entries + self._frame_bytes + self._answer_bytes

    def weigh_frames(self) -> None:
        """Say that frames have been loaded."""
        frames = [self.waiting, self.details.rows if self.details is not None else None]
        if self.entries is None:
            frames.append(self.figures)  # otherwise its columns are those of the entries
        self._frame_bytes = sum(frame_bytes(frame) for frame in frames if frame is not None)

    @property
    def statuses(self) -> Mapping[str, Status]:
        """The state of each connection by id."""
        assert self.known_statuses is not None, "the connections were not loaded"
        return self.known_statuses

    @property
    def words(self) -> OwnWords:
        """What the user says of single bookings."""
        assert self.known_words is not None, "the words were not loaded"
        return self.known_words

    @property
    def own_rules(self) -> Sequence[Rule]:
        """The user's own rules of classification."""
        assert self.details is not None, "the details were not loaded"
        return self.details.own_rules

    def answer(self, key: Hashable) -> Answer | None:
        """An answer that was given before, at this very state."""
        return self._answers.get(key)

    def is_asked_again(self, key: Hashable) -> bool:
        """Whether this has been asked lately. An answer that is quickly made is worth its bytes only then: most pages
        are read once, and memory that was not used lately is slower than what makes them."""
        asked = hash(key)
        if asked in self._asked:
            return True
        if len(self._asked) >= ASKED_MAX:
            self._asked.clear()
        self._asked.add(asked)
        return False

    def keep_answer(self, key: Hashable, answer: Answer) -> None:
        """Keep an answer whose body is bytes."""
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
        """How many rows the selection holds, and the JSON of one page of them, with their finer categories as `leaf`
        shows them."""
        total, positions = self._listed.page(selection, limit=limit, offset=offset)
        rows = self._listed.json(positions)
        if leaf is None:
            return total, rows
        return total, [
            with_leaf(row, leaf(code)) for row, code in zip(rows, self._listed.leaves(positions), strict=True)
        ]

    def matching(self, selection: Selection) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.BOOKINGS."""
        return self._listed.matching(selection)

    def searched(self, selection: Selection, *, pending: bool = False) -> pl.DataFrame:
        """All rows of the selection as analytics.frames.SEARCHED, or those that are not booked yet."""
        if not pending:
            return self._listed.searched(selection)
        assert self.waiting is not None, "what is not booked yet was not loaded"
        return marked(self.waiting.filter(selection.expression()), pending=True)

    def refunds(self, account_ids: Sequence[str]) -> pl.Series:
        """The ids of the refunds among the booked rows of these accounts."""
        return self._listed.refunds(account_ids)

    def bookings(self, *_selection: object, **_days: object) -> pl.DataFrame:
        """At least the rows of these accounts and days as analytics.frames.COUNTED: all there are, for what reads them
        chooses by itself, and a selection would be a copy."""
        assert self.figures is not None, "the figures' rows were not loaded"
        return self.figures

    def pending(self, *_selection: object, **_days: object) -> pl.DataFrame:
        """The rows that are not booked yet, as `bookings` has those that are."""
        assert self.waiting is not None, "what is not booked yet was not loaded"
        return self.waiting.select(*BOOKINGS)

    def listed(self, ids: Iterable[str], *, pending: bool = False) -> Mapping[str, Row]:
        """The rows of these ids as a page lists them, by id."""
        if pending:
            assert self.waiting is not None, "what is not booked yet was not loaded"
            rows = self.waiting.filter(pl.col("id").is_in(list(ids)))
        else:
            rows = self._listed.rows[[self._listed.places[id_] for id_ in ids]]
        return {row["id"]: row for row in rows.iter_rows(named=True)}

    def find(self, id_: str) -> Row | None:
        """One booked transaction with all its details and the rules that derived them."""
        assert self.details is not None, "the details were not loaded"
        at = self._listed.places.get(id_)
        if at is None:
            return None
        return {**self._listed.rows.row(at, named=True), **self.details.rows.row(at, named=True)}

    @property
    def _listed(self) -> Entries:
        assert self.entries is not None, "the list was not loaded"
        return self.entries
