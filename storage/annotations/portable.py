"""Export and import of all that a user has said (own categories, rules, corrections, targets, annotations, and what
`account_words` is about) as lines of JSON, for a store made anew from statement files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec.structs import asdict

from analytics.classification.facts import CATEGORIES, LEAVES, category_of
from analytics.classification.rules import (
    TAGS_MAX,
    ChosenCategory,
    Rule,
    as_json,
    is_correction_key,
    is_tag,
    parse_rules,
    render_rules,
    with_free_ids,
)
from analytics.minor_digits import in_digits
from analytics.periods import month_of
from storage import rules
from storage.annotations import account_words, anchors, annotations, own_categories, targets, word_lines
from storage.annotations.anchors import Anchor
from storage.annotations.annotation import (
    SPLITS_MAX,
    SPLITS_MIN,
    Annotation,
    OwnCategory,
    Split,
    Tag,
    fold_tag,
    is_note,
)
from storage.annotations.named_accounts import NamedAccounts
from storage.annotations.own_categories import OWN_ID
from storage.annotations.targets import Target, TooManyTargets
from storage.annotations.word_lines import ALL, CANNOT_BE_READ, Json, SeenWords
from storage.database import Session, Transaction
from storage.importing.batches import CURRENCY


def lines(session: Session, user_id: str, seen: SeenWords = ALL) -> Iterator[str]:
    """The lines of an export: own categories, rules in order, corrections, targets, the annotations of single bookings,
    also of those that are gone, and what was said of accounts and recurring payments; of all that what may be `seen`.
    """
    for own in annotations.own_categories(session, user_id).values():
        yield word_lines.write("ownCategory", {"id": own.id, "name": own.name} | place_members(own[2:]))
    for rule in rules.of_user(session, user_id):
        yield word_lines.write("rule", as_json(rule))
    for key, choice in sorted(each for each in rules.corrections(session, user_id).items() if seen.correction(each[0])):
        yield word_lines.write("correction", {"key": key} | place_members(choice))
    for target in targets.of_user(session, user_id):
        yield word_lines.write("target", _target_json(target))
    named, whose = NamedAccounts(session, user_id), anchors.accounts_of(session, user_id)
    for id_, anchor in sorted(anchors.of_user(session, user_id).items()):
        if not seen.account(whose.get(anchor.account_id, anchor.account_id)):
            continue
        said = annotations.find(session, user_id, id_)
        place = place_members(said.place or ())
        words = {"note": said.note, "tags": _tags(said.tags) or None, "splits": [*map(_split_json, said.parts)] or None}
        yield word_lines.write(
            "annotation",
            {"id": id_, "account": named.members(anchor.account_id), **word_lines.booking_members(anchor)}
            | place
            | {name: value for name, value in words.items() if value is not None},
        )
    yield from account_words.lines(session, user_id, seen)


def read(session: Transaction, user_id: str, text: str, *, now: datetime) -> int:
    """Take over from the lines of an export what the user has not said here, and return how many lines that was; those
    that `account_words` reads are left out. Annotations of bookings that do not exist wait until these come. Holds the
    user; derives no booking anew. Raises InvalidWords and InvalidRule."""
    session.hold(user_id)
    known = rules.of_user(session, user_id)
    corrections = rules.corrections(session, user_id)
    named = NamedAccounts(session, user_id)
    stored = anchors.of_user(session, user_id)
    whose = anchors.accounts_of(session, user_id)
    taken = {_present_anchor(whose, anchor) for anchor in stored.values()}
    own = annotations.own_categories(session, user_id)
    aimed = {(each.place, each.first_month) for each in targets.of_user(session, user_id)}
    added: list[Rule] = []
    added_targets: list[Target] = []
    count = 0
    for number, kind, entry in word_lines.parse(text):
        try:
            if kind == "ownCategory":
                count += _take_over(session, user_id, entry, own)
            elif kind == "rule":
                (rule,) = parse_rules(json.dumps(_map_rule(entry, own)))
                if not any(_is_same_rule(rule, other) for other in (*known, *added)):
                    added.append(rule)
            elif kind == "correction":
                choice = _choice(entry, own)
                if choice is None:
                    raise KeyError("category")
                if not is_correction_key(entry["key"]):
                    raise ValueError("key: must begin with creditor:, iban:, merchant: or name:")
                if entry["key"] not in corrections:
                    rules.correct(session, user_id, str(entry["key"]), choice)
                    count += 1
            elif kind == "target":
                target = _target(entry, own)
                if (target.place, target.first_month) not in aimed:
                    if len(aimed) >= targets.TARGETS_MAX:
                        raise TooManyTargets("more than {limit} targets", limit=targets.TARGETS_MAX)
                    aimed.add((target.place, target.first_month))
                    added_targets.append(target)
            elif kind == "annotation":
                annotation, anchor = _annotation(entry, named, own)
                if annotation.transaction_id not in stored and _present_anchor(whose, anchor) not in taken:
                    annotations.sleep(session, user_id, annotation, anchor, now=now)
                    stored[annotation.transaction_id] = anchor
                    taken.add(_present_anchor(whose, anchor))
                    count += 1
        except CANNOT_BE_READ as error:
            raise word_lines.invalid(number, error) from error
    if added:
        rules.keep(session, user_id, parse_rules(render_rules([*known, *with_free_ids(known, added)])))
    if added_targets:
        targets.add(session, user_id, added_targets)
    anchors.settle(session, user_id)
    return count + len(added) + len(added_targets)


def _tags(said: Mapping[str, Tag]) -> list[Json]:
    return [{"name": tag.name, "at": tag.tagged_at.isoformat()} for tag in said.values()]


def _split_json(part: Split) -> Json:
    words = {"amount": f"{part.amount:f}", "note": part.note, "tags": _tags(part.tags) or None}
    return {name: value for name, value in words.items() if value is not None} | place_members(part.place)


def place_members(place: Sequence[str | None]) -> dict[str, str]:
    """The members of a JSON object that name this category; `place` is category, finer category and id of an own one,
    of which None is left out."""
    names = ("category", "detailedCategory", "ownCategoryId")
    return {name: code for name, code in zip(names, place, strict=False) if code is not None}


def _choice(entry: Json, own: Mapping[str, OwnCategory]) -> ChosenCategory | None:
    """The category that a line names, `own` being the own categories here by their ids in the export; None where it
    names none. Raises ValueError for an unknown one."""
    category, leaf, own_id = (entry.get(name) for name in ("category", "detailedCategory", "ownCategoryId"))
    if own_id is not None:
        if own_id not in own:
            raise ValueError("an unknown ownCategoryId")
        here = own[own_id]
        return ChosenCategory(here.category, here.detailed_category, here.id)
    if category is not None and category not in CATEGORIES:
        raise ValueError("an unknown category")
    if leaf is not None and (leaf not in LEAVES or category_of(leaf) != category):
        raise ValueError("an unknown detailedCategory")
    return ChosenCategory(category, leaf) if category is not None else None


def _target_json(target: Target) -> Json:
    return {
        "place": target.place,
        "from": target.first_month.isoformat()[:7],
        "amount": f"{target.amount:f}",
        "currency": target.currency,
        "period": target.period,
    }


def _target(entry: Json, own: Mapping[str, OwnCategory]) -> Target:
    place, period, currency = (str(entry[name]) for name in ("place", "period", "currency"))
    if place in own:
        place = own[place].id
    elif place not in CATEGORIES and place not in LEAVES:
        raise ValueError("an unknown place")
    amount = word_lines.money(entry["amount"])
    is_amount = 0 <= amount <= targets.AMOUNT_MAX and amount == in_digits(amount, currency)
    is_one = is_amount and CURRENCY.fullmatch(currency)
    if not is_one or period not in targets.PERIODS:
        raise ValueError("not a target")
    return Target(place, month_of(entry["from"]), amount, currency, period)


def _take_over(session: Transaction, user_id: str, entry: Json, own: dict[str, OwnCategory]) -> int:
    """Add a line's own category unless one of that name or id is there, and enter it in `own` under the line's id;
    returns how many were added, 0 or 1."""
    choice, name, id_ = _choice(entry, {}), entry["name"], str(entry["id"])
    if choice is None or not isinstance(name, str) or not is_tag(name):
        raise ValueError("not an own category")
    place = choice[:2]
    of_place = [each for each in own.values() if each[2:] == place]
    same = next((each for each in of_place if each.id == id_), None)  # whatever it is called here by now
    same = same or next((each for each in of_place if fold_tag(each.name) == fold_tag(name)), None)
    wanted = id_ if OWN_ID.fullmatch(id_) else None
    own[id_] = same or own_categories.add(session, user_id, name, *place, wanted_id=wanted)
    return int(same is None)


def _map_rule(entry: Json, own: Mapping[str, OwnCategory]) -> Json:
    """The rule of a line. If it names an own category, it gets the id that this category has in this store (`own`: by
    the id in the export), and the category and finer category above. Raises ValueError."""
    choice = _choice(entry, own) if entry.get("ownCategoryId") is not None else None
    return {**entry, **place_members(choice)} if choice else entry


def _note_and_tags(entry: Json) -> tuple[str | None, Mapping[str, Tag]]:
    """The valid note and tags of a booking or a part. Raises ValueError."""
    note = entry.get("note")
    given = [Tag(str(tag["name"]), word_lines.moment(tag["at"])) for tag in entry.get("tags", [])]
    tags = {fold_tag(tag.name): tag for tag in given}
    if note is not None and (not isinstance(note, str) or not note or not is_note(note)):
        raise ValueError("not a note")
    if len(tags) > TAGS_MAX or not all(is_tag(said.name) for said in tags.values()):
        raise ValueError("not tags")
    return note, tags


def _part(entry: Json, own: Mapping[str, OwnCategory]) -> Split:
    choice = _choice(entry, own)
    if choice is None:
        raise ValueError("a part without category")
    return Split(word_lines.money(entry["amount"]), choice, *_note_and_tags(entry))


def _annotation(entry: Json, named: NamedAccounts, own: Mapping[str, OwnCategory]) -> tuple[Annotation, Anchor]:
    choice, (note, tags) = _choice(entry, own), _note_and_tags(entry)
    parts = [_part(each, own) for each in entry.get("splits", [])]
    if parts and not SPLITS_MIN <= len(parts) <= SPLITS_MAX:
        raise ValueError("not parts")
    anchor = word_lines.booking(entry, named.find_or_stand_in(entry["account"]))
    return Annotation(str(entry["id"]), choice, note, tags, parts), anchor


def _present_anchor(whose: Mapping[str, str], anchor: Anchor) -> Anchor:
    """The anchor with the account that its account is now, or has become a part of."""
    return anchor._replace(account_id=whose.get(anchor.account_id, anchor.account_id))


def _is_same_rule(one: Rule, other: Rule) -> bool:
    return {**asdict(one), "id": ""} == {**asdict(other), "id": ""}
