"""What a user has said about one booking, and about all: categories, notes, tags and parts, as values."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct, field

from analytics.classification.rules import ChosenCategory
from analytics.searching.parts import fit
from storage.database import Row

NOTE_LENGTH_MAX = 4_000
DIFFERENT_TAGS_MAX = 1_000  # for each user
LATEST = datetime(9999, 12, 31)  # noqa: DTZ001 - without a zone, as stored; a person's own spelling of a tag comes before that of rules
CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")  # halves of letters, too, which no store can keep
SPLITS_MIN, SPLITS_MAX = 2, 50


class Tag(NamedTuple):
    """A tag as it was spelled when it was given, and when that was (UTC; LATEST for a tag that a rule gives)."""

    name: str
    tagged_at: datetime


class OwnCategory(NamedTuple):
    """A category that the user has named, directly below a finer category or, where `detailed_category` is None, below
    a category."""

    id: str
    name: str
    category: str
    detailed_category: str | None


class Split(Struct, frozen=True):
    """A part of a booking's amount with its category, note and tags; `tags` are keyed by `fold_tag` of their names."""

    amount: Decimal
    place: ChosenCategory
    note: str | None = None
    tags: Mapping[str, Tag] = field(default_factory=dict)

    def is_in(self, own_id: str, category: str | None, leaf: str | None) -> bool:
        """Whether the part is in this own category, and in this category and finer category (`leaf`) where they are not
        None."""
        of_place = (self.place.category, self.place.detailed_category)
        return self.place.own_category_id == own_id and all(
            wanted in (None, said) for wanted, said in zip((category, leaf), of_place, strict=True)
        )


class Annotation(Struct, frozen=True):
    """What a user has said about one booking. `place` is the category that they chose for the whole booking, None where
    they chose none. `tags` are keyed by `fold_tag` of their names. If `parts` add up to an earlier amount of the
    booking, they are kept but count nowhere. `rule_tags` are the tags that the user's rules give."""

    transaction_id: str
    place: ChosenCategory | None = None
    note: str | None = None
    tags: Mapping[str, Tag] = field(default_factory=dict)
    parts: Sequence[Split] = ()
    rule_tags: Mapping[str, Tag] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the user has given neither category nor note, tags or parts; tags of rules do not count."""
        return self.place is None and self.note is None and not self.tags and not self.parts

    @property
    def places(self) -> object:
        """The chosen category, and amount and category of each part: a value to compare with that of another
        annotation."""
        return self.place, [(part.amount, part.place) for part in self.parts]

    @property
    def all_tags(self) -> Mapping[str, Tag]:
        """The tags of the booking, of its parts and of rules, by `fold_tag`; one that both the user and a rule gave is
        spelled as the user spelled it first."""
        return {**self.rule_tags, **self.own_tags}

    @property
    def own_tags(self) -> Mapping[str, Tag]:
        """The tags that the user gave to the booking and its parts, by `fold_tag`, each in its earliest spelling."""
        said = dict(self.tags)
        for part in self.parts:
            for tag, each in part.tags.items():
                said[tag] = earlier_spelling(said.get(tag, each), each)
        return said

    def fits(self, booking: Row) -> bool:
        """Whether there are parts and they add up to the `amount` of this booking."""
        amounts = [part.amount for part in self.parts]
        return bool(amounts) and fit(amounts, amount=booking["amount"], currency=booking["currency"])


class OwnWords(Struct, frozen=True):
    """A user's annotations of existing bookings that are not hidden (a booking that only rules have tagged has one,
    too), and the accounts of these bookings, both by booking id.

    `own` are the user's own categories by id. `owned` gives, for each booking in one, the own category's id and the
    finer category, whoever put the booking there; its account is in `accounts` too.
    """

    by_id: Mapping[str, Annotation]
    accounts: Mapping[str, str]
    own: Mapping[str, OwnCategory] = field(default_factory=dict)
    owned: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)

    def with_tag(self, tag: str) -> list[str]:
        """The ids of the bookings to which the user or a rule gave this tag, whatever its case."""
        wanted = fold_tag(tag)
        return [id_ for id_, each in self.by_id.items() if wanted in each.all_tags]

    def saying(self, text: str) -> list[str]:
        """The ids of the bookings of which the user says this, whatever its case: in a note, a tag or the name of an
        own category, of the whole or of a part."""
        wanted, silent = fold_tag(text), Annotation("")
        own = {id_ for id_, each in self.own.items() if wanted in fold_tag(each.name)}

        def is_said(id_: str, said: Annotation) -> bool:
            places = [self.owned.get(id_, ("",))[0], *(part.place.own_category_id for part in said.parts)]
            texts = [said.note, *said.all_tags, *(part.note for part in said.parts)]
            return not own.isdisjoint(places) or any(wanted in fold_tag(each) for each in texts if each)

        return [id_ for id_ in {*self.by_id, *self.owned} if is_said(id_, self.by_id.get(id_, silent))]

    def in_own(self, own_id: str, category: str | None = None, leaf: str | None = None) -> list[str]:
        """The ids of the bookings in this own category: those without parts that are in it, and those of which a part
        is. `category` and `leaf` (a finer category) narrow the latter alone: the part has to be in them as well."""
        split = {id_: each.parts for id_, each in self.by_id.items() if each.parts}
        whole = [id_ for id_, (each, _) in self.owned.items() if each == own_id and id_ not in split]
        return whole + [
            id_ for id_, parts in split.items() if any(part.is_in(own_id, category, leaf) for part in parts)
        ]

    def names(self, covers: Callable[[str], bool]) -> dict[str, tuple[str, int]]:
        """For each tag (by `fold_tag`) of bookings whose account id `covers` accepts: its earliest spelling, and the
        number of these bookings."""
        first: dict[str, Tag] = {}
        counts: dict[str, int] = {}
        for id_, each in self.by_id.items():
            if not covers(self.accounts[id_]):
                continue
            for tag, said in each.all_tags.items():
                counts[tag] = counts.get(tag, 0) + 1
                first[tag] = earlier_spelling(first.get(tag, said), said)
        return {tag: (said.name, counts[tag]) for tag, said in first.items()}


def earlier_spelling(one: Tag, other: Tag) -> Tag:
    """The earlier of two spellings of a tag, which is the one to show."""
    return min(one, other, key=lambda each: (each.tagged_at, each.name))


def fold_tag(tag: str) -> str:
    """The form of a tag for comparisons: without regard to case, repeated spaces and variants of one letter."""
    return " ".join(unicodedata.normalize("NFKC", tag).casefold().split())


def is_note(text: str) -> bool:
    """Whether the text may be a note: at most NOTE_LENGTH_MAX characters, none of them a control character except white
    space."""
    return len(text) <= NOTE_LENGTH_MAX and CONTROL.search(text) is None
