"""The words that a giver lets come along with what they share: categories and notes of single bookings, in the
receiver's ledger for as long as the share tells them. Where the receiver has words of their own, those stand."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from storage.annotations import anchors, annotations
from storage.annotations.anchors import Anchor
from storage.annotations.annotation import Annotation
from storage.database import Session, Transaction
from storage.importing import derivation


class TaggedAlong(NamedTuple):
    """What a giver said of one booking, and where that is in the receiver's ledger."""

    said: Annotation
    anchor: Anchor


def words_of(session: Session, user_id: str, accounts: Mapping[str, str]) -> list[TaggedAlong]:
    """What this giver has said of bookings in these accounts, by the receiver's id of each; an own category as the
    built-in one above it, tags and parts left out, and nothing that somebody else's share told them."""
    others = annotations.said_by_others(session, user_id)
    said = {id_: each for id_, each in annotations.of_user(session, user_id).by_id.items() if id_ not in others}
    found = []
    for id_, anchor in sorted(anchors.of_bookings(session, user_id, sorted(said)).items()):
        place = said[id_].place
        words = Annotation(id_, place._replace(own_category_id=None) if place is not None else None, said[id_].note)
        if anchor.account_id in accounts and not words.is_empty:
            found.append(TaggedAlong(words, anchor._replace(account_id=accounts[anchor.account_id])))
    return found


def digest_of(words: Sequence[TaggedAlong]) -> str:
    """By which these words are known again; empty for none."""
    told = [(each.said.transaction_id, each.said.place, each.said.note, each.anchor) for each in words]
    return hashlib.sha256(repr(told).encode("utf-8", "surrogatepass")).hexdigest() if told else ""


def replace(session: Transaction, user_id: str, share_id: str, words: Sequence[TaggedAlong], *, now: datetime) -> None:
    """Let these be the words of this share, in place of those that it told before; what fits no booking, or one of
    which the receiver has said something, is left out."""
    session.hold(user_id)
    before = annotations.of_share(session, user_id, share_id)
    annotations.forget(session, user_id, before)
    for said, anchor in words:
        asleep = Annotation(f"{share_id}:{said.transaction_id}", said.place, said.note)
        annotations.sleep(session, user_id, asleep, anchor, now=now, told_by=share_id)
    anchors.settle(session, user_id)
    told = annotations.of_share(session, user_id, share_id)
    awake = annotations.of_user(session, user_id).by_id
    annotations.forget(session, user_id, [id_ for id_ in told if id_ not in awake])
    concerned = sorted({*before, *(id_ for id_ in told if id_ in awake)})
    derivation.apply_rules(session, user_id, now=now, transaction_ids=concerned)
