"""Hands over what people share: the scheduler compares the states of givers and receivers with those seen last, and
where they differ, what the giver's own banks and files have told with what the receiver was handed."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from auth.people.shares import Shares
from auth.tokens.access_check import coverage_of
from connectors.sources import household
from connectors.sources.household import ToldOnce
from handlers.work.clock import Clock
from storage import accounts, users
from storage.accounts import StoredAccount
from storage.annotations import annotations, of_shares
from storage.annotations.of_shares import TaggedAlong
from storage.boundary import contain
from storage.changes.incarnation import Life
from storage.database import Store, StoreUnavailable, Transaction, UserBusy
from storage.importing import contributions
from storage.importing.batches import read_batch
from storage.importing.contributions import Contribution
from storage.importing.matching import booking_keys
from storage.importing.spool import wording_of
from storage.oauth import shares
from storage.oauth.shares import Share
from storage.undo_and_merge import handed_over
from storage.undo_and_merge.handed_over import SharedPiece
from storage.users import User

PIECES_MAX = 20
"""Imports that are handed over in one transaction, each of which is compared with the receiver's rows as any import is:
60 ms. The receiver's other changes wait for so long, and no longer."""

ROUND_SECONDS_MAX = 3.0  # of the scheduler, or of the request that accepts a share

Done = Literal["nothing", "a piece", "all", "outdated"]

log = logging.getLogger("bankdata.shares")


class UnreadPiece(Struct, frozen=True):
    """What is read for a SharedPiece, whose fields it has, once it is handed over."""

    told_by: str
    is_of_file: bool
    source_id: str | None
    imported_at: datetime
    records: Callable[[], Iterable[Record]]


class Offered(Struct, frozen=True):
    """What the giver's own banks and files have told about one shared account, in its order, each by its id; last comes
    what it shows for accounts in question."""

    account: StoredAccount
    described: AccountRecord
    pieces: Mapping[str, UnreadPiece]


class _Outdated(Exception):
    """The terms of the share, or what was handed over, are others than when the comparison began: nothing is
    committed."""


class Households(Struct, frozen=True, kw_only=True):
    """Keeps what receivers of shares have equal to what givers share; `forget_access` is called when apps may see less,
    `after_import` with the receiver's id when something was handed over."""

    store: Store
    clock: Clock
    life: Life
    sharing: Shares
    forget_access: Callable[[], None]
    after_import: Callable[[str], None]

    def round(self, only: str | None = None) -> None:
        """Settle every accepted share (or only the one with this id) whose giver or receiver has changed, or that has
        ended; a failure of one leaves the others alone. Without shares this is one query. A long history comes in
        pieces, one a share and turn, for ROUND_SECONDS_MAX at most: the next round goes on."""
        everybody = self.store.for_everybody()
        found = [each for each in shares.accepted(everybody) if only in {None, each.id}]
        until = time.monotonic() + ROUND_SECONDS_MAX
        while found:
            ids = {id_ for each in found for id_ in (each.giver_id, each.receiver_id) if id_}
            states, in_pieces = users.states(everybody, ids), set[str]()
            for share in found:
                with (
                    contain(log, "share %s is settled later", share.id, passes=(StoreUnavailable,)),
                    suppress(UserBusy),  # an import of the receiver: the next round
                ):
                    if self._settle(share, states):
                        in_pieces.add(share.id)
            if not in_pieces or time.monotonic() >= until:
                return
            found = [each for each in shares.accepted(everybody) if each.id in in_pieces]

    def _settle(self, share: Share, states: Mapping[str, int]) -> bool:
        """Hand over what is new and take back what is gone; True if more is to come. Accounts that are new to the
        receiver are closed to apps first, and handed over once every process knows that."""
        everybody, now = self.store.for_everybody(), self.clock.now_in_utc()
        receiver_id = share.receiver_id or ""
        if receiver_id not in states:
            everybody.atomically(lambda session: shares.remove(session, share.id))
            return False
        goes_on = share.is_live(now) and share.giver_id in states and share.life == self.life.present.id
        mark = f"{states.get(share.giver_id)} {states[receiver_id]} {goes_on}"
        if share.seen == mark:
            return False
        if not goes_on or share.seen == shares.UNSEEN:
            self.forget_access()  # nobody reads on what is shared no more, also while an import keeps the rows
        receiver = users.find(self.store.of(receiver_id), receiver_id)
        assert receiver is not None, "a state is somebody's"
        self._take_words_back(share, receiver, goes_on=goes_on)
        giver = users.find(self.store.of(share.giver_id), share.giver_id)
        if goes_on and (giver is None or giver.paused_at is not None or not giver.has_subscription):
            return False  # nothing new meanwhile
        offered = self._offered(giver, share) if goes_on and giver is not None else {}
        if not self._hold_back(share, receiver, offered):
            return False
        done = self._replace(share, receiver, offered)
        if done == "nothing" and goes_on:
            done = self._lend_lines(share, receiver, offered)
        if done == "nothing" and goes_on and share.with_words and giver is not None:
            done = self._say(share, receiver, self._words(share, receiver, giver, offered))
        if done == "all":
            self.sharing.handed_over(share)
            self.after_import(receiver_id)
        elif done == "nothing" and (share.ended_at is not None or not share.is_live(now) or giver is None):
            everybody.atomically(lambda session: shares.remove(session, share.id))
            self.forget_access()
        elif done == "nothing":
            everybody.atomically(lambda session: shares.note_seen(session, share.id, before=share.seen, seen=mark))
        return done == "a piece"

    def _take_words_back(self, share: Share, receiver: User, *, goes_on: bool) -> None:
        if goes_on and share.with_words:
            return
        if annotations.of_share(self.store.of(receiver.id), receiver.id, share.id):
            self._say(share, receiver, [], is_sure=True)

    def _offered(self, giver: User, share: Share) -> dict[str, Offered]:
        """What is shared now, by the giver's account, hidden ones left out."""
        coverage = coverage_of(share.terms)
        with self.store.of(giver.id).transaction() as session:
            owned = [
                each for each in accounts.of_user(session, giver.id) if coverage is None or coverage.covers(each.id)
            ]
            told = handed_over.own_tellings(session, giver.id, [each.id for each in owned])
            shown = handed_over.shown_for_others(session, giver.id)
        by_account: dict[str, list[tuple[Contribution, bool]]] = defaultdict(list)
        for each in told:
            by_account[each[0].account_id].append(each)
        return {
            each.id: self._offer(share, giver, each, by_account[each.id], shown.get(each.id, {}))
            for each in owned
            if each.id in by_account
        }

    def _offer(
        self,
        share: Share,
        giver: User,
        account: StoredAccount,
        told: Sequence[tuple[Contribution, bool]],
        shown: Mapping[str, Sequence[TransactionRecord]],
    ) -> Offered:
        """What was told about an account, which is described as the giver's bank told it first, by the giver's id and
        present IBAN. It is itself what has this IBAN; where none of its sources had it, the one that it began with:
        what else there is, the giver has merged into it, or may (`shown`, by account in question)."""
        first = told[0][0].blocks[0].account
        described = household.account_of(first, key=account.id, iban=account.iban, giver=giver.name)
        by_iban = booking_keys.account_id(user_name=giver.name, connection_id="", account=described)
        own_source = by_iban if any(each.source_id == by_iban for each, _ in told) else account.id
        place, pieces = f"{share.id}:{account.id}", {}
        for each, is_of_file in told:
            whose, source = ("own", None) if each.source_id == own_source else ("merged", each.source_id)
            id_ = f"{place}:{each.sequence}:{each.imported_at:%Y%m%d%H%M%S%f}:{whose}"
            read = partial(contributions.records, self.store.of(giver.id), giver.id, each)
            pieces[id_] = UnreadPiece(each.connection_id, is_of_file, source, each.imported_at, read)
        for source, bookings in shown.items():
            records = [first, *bookings, StatementRecord()]
            id_ = f"{place}:{source}:{sha256(b''.join(map(wording_of, bookings))).hexdigest()}:shown"
            is_of_file, latest = False, told[-1][0].imported_at
            pieces[id_] = UnreadPiece(source, is_of_file, source, latest, partial(iter, records))
        return Offered(account, described, pieces)

    def _hold_back(self, share: Share, receiver: User, offered: Mapping[str, Offered]) -> bool:
        """See to it that no app of the receiver sees an account that only this share tells; True once that is so in
        every process. An account that the receiver had before, or that a bank of theirs tells, is theirs."""
        with self.store.of(receiver.id).transaction() as session:
            ids = set(_targets(session, share, receiver, offered).values())
            handed = {each.account_id for each in handed_over.handed(session, receiver.id, share.id, share.giver_name)}
            theirs = handed_over.own_accounts(session, receiver.id) - set(share.held)
            theirs |= handed_over.own_accounts(session, receiver.id, proven=True)
        held = (ids | handed) - theirs
        if held == set(share.held):
            return True
        if dropped := set() if share.pass_on else set(share.held) - held:
            self._say(share, receiver, [], is_sure=True)  # before apps see these accounts; the next look tells the rest
            self.store.of(receiver.id).atomically(partial(_forget, user_id=receiver.id, account_ids=dropped))
        self.store.for_everybody().atomically(lambda session: shares.hold_back(session, share.id, held))
        self.forget_access()
        return not dropped and held <= set(share.held)

    def _replace(self, share: Share, receiver: User, offered: Mapping[str, Offered]) -> Done:
        """Bring the receiver's accounts up to what is offered, or nearer to that by a piece. It is outdated, with
        nothing committed, if that or the terms have changed meanwhile: the next round looks again."""
        own, now = self.store.of(receiver.id), self.clock.now()
        present: dict[str, list[Contribution]] = defaultdict(list)
        with own.transaction() as session:
            handed = handed_over.handed(session, receiver.id, share.id, share.giver_name)
            targets = _targets(session, share, receiver, offered)
        for each in handed:
            present[each.batch_id.split(":")[1]].append(each)
        gone: list[Contribution] = []
        coming: list[tuple[Offered, str]] = []
        for account_id in sorted(present.keys() | offered.keys()):
            had, wanted = present.get(account_id, []), offered.get(account_id)
            ids = list(wanted.pieces) if wanted is not None else []
            is_there = all(each.account_id == targets.get(account_id) for each in had)
            is_begun = is_there and [each.batch_id for each in had] == ids[: len(had)]
            gone += [] if is_begun else had
            if wanted is not None:
                coming += [(wanted, id_) for id_ in ids[len(had) if is_begun else 0 :]]
        if not gone and not coming:
            return "nothing"
        piece = coming if gone else coming[:PIECES_MAX]  # what is told anew is never there in part
        new = [each for wanted, id_ in piece for each in self._read(wanted, id_)]

        def work(session: Transaction) -> None:
            session.hold(receiver.id)
            if handed_over.handed(session, receiver.id, share.id, share.giver_name) != handed:
                raise _Outdated  # another process was faster
            handed_over.replace(session, user=receiver, giver=share.giver_name, gone=gone, new=new, now=now)
            targets = _targets(session, share, receiver, offered)
            told = {targets[id_]: each.account for id_, each in offered.items()}
            theirs = handed_over.own_accounts(session, receiver.id)
            synced = {id_: account.last_synced_at for id_, account in told.items() if id_ not in theirs}
            handed_over.note_synced(session, receiver.id, synced)
            lines = {id_: each.credit_line for id_, each in told.items()}
            handed_over.take_lines(session, receiver.id, share.giver_name, lines)
            at_last = shares.find(self.store.for_everybody(), share.id)
            if at_last is None or _terms_of(at_last) != _terms_of(share):
                raise _Outdated

        try:
            own.atomically(work)
        except _Outdated:
            return "outdated"
        return "all" if len(piece) == len(coming) else "a piece"

    def _lend_lines(self, share: Share, receiver: User, offered: Mapping[str, Offered]) -> Done:
        """Let the receiver's accounts go as far below zero as the giver says, though nothing was to be handed over."""

        def work(session: Transaction) -> bool:
            targets = _targets(session, share, receiver, offered)
            lines = {targets[id_]: each.account.credit_line for id_, each in offered.items()}
            return handed_over.take_lines(session, receiver.id, share.giver_name, lines)

        return "all" if self.store.of(receiver.id).atomically(work) else "nothing"

    def _words(self, share: Share, receiver: User, giver: User, offered: Mapping[str, Offered]) -> list[TaggedAlong]:
        """The giver's words that come along: none in an account that apps of the receiver see, unless they may."""
        with self.store.of(receiver.id).transaction() as session:
            targets = _targets(session, share, receiver, offered)
        present = {id_: theirs for id_, theirs in targets.items() if share.pass_on or theirs in share.held}
        return of_shares.words_of(self.store.of(giver.id), giver.id, present)

    def _say(self, share: Share, receiver: User, words: Sequence[TaggedAlong], *, is_sure: bool = False) -> Done:
        """Let these be the words of the share; nothing where they are already, unless it `is_sure` that they are
        not."""
        digest, now = of_shares.digest_of(words), self.clock.now()
        if digest == share.words_told and not is_sure:
            return "nothing"

        def work(session: Transaction) -> None:
            of_shares.replace(session, receiver.id, share.id, words, now=now)
            at_last = shares.find(self.store.for_everybody(), share.id)
            if words and (at_last is None or _terms_of(at_last) != _terms_of(share)):
                raise _Outdated

        try:
            self.store.of(receiver.id).atomically(work)
        except _Outdated:
            return "outdated"
        self.store.for_everybody().atomically(lambda session: shares.note_words(session, share.id, digest))
        return "all"

    def _read(self, wanted: Offered, id_: str) -> Iterator[SharedPiece]:
        piece = wanted.pieces[id_]
        for batch in household.batches([ToldOnce(id_, piece.records())], account=wanted.described):
            yield SharedPiece(
                id=batch.id,
                told_by=piece.told_by,
                is_of_file=piece.is_of_file,
                source_id=piece.source_id,
                imported_at=piece.imported_at,
                account=wanted.described,
                content=read_batch(batch, today=self.clock.today()),
            )


def _forget(session: Transaction, *, user_id: str, account_ids: Collection[str]) -> None:
    session.hold(user_id)
    handed_over.forget_told(session, user_id, account_ids)


def _terms_of(share: Share) -> tuple[object, ...]:
    return share.accounts, share.all_but, share.ends_at, share.ended_at, share.life, share.with_words, share.pass_on


def _targets(session: Transaction, share: Share, receiver: User, offered: Mapping[str, Offered]) -> dict[str, str]:
    """The receiver's account that each offered one is, or will be, by the giver's id."""
    return {
        id_: handed_over.target(session, receiver, share.giver_name, each.described).account_id
        for id_, each in offered.items()
    }
