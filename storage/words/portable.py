"""All words of a person as lines of JSON, and back: what a store needs that is made anew from statement files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from analytics.classification.facts import CATEGORIES
from analytics.classification.leaves import category_of
from analytics.classification.rules import TAGS_MAX, Rule, is_tag, members, parse_rules, render_rules
from storage import accounts, rules
from storage.accounts import StoredAccount
from storage.database import Session, Transaction
from storage.words import anchors, annotations
from storage.words.anchors import Anchor
from storage.words.annotations import (
    SPLITS_MAX,
    SPLITS_MIN,
    Annotation,
    Split,
    Tag,
    folded,
    is_note,
)

Json = Mapping[str, Any]
UNIT, AMOUNT_END = Decimal("0.00001"), 10**15  # of amounts as the store has them


class InvalidWords(Exception):
    """A line that no export of words has."""


def lines(session: Session, user_id: str) -> Iterator[str]:
    """Rules in their order, corrections, and what is said of single bookings, those that are gone as well."""
    for rule in rules.of_user(session, user_id):
        yield _line("rule", {name: value for name, value in members(rule).items() if value is not None})
    for key, category in sorted(rules.corrections(session, user_id).items()):
        yield _line("correction", {"key": key, "category": category})
    owned = {each.id: each for each in accounts.every(session, user_id)}
    for id_, anchor in sorted(anchors.of_user(session, user_id).items()):
        said = annotations.find(session, user_id, id_)
        told: dict[str, Any] = {
            "category": said.category,
            "detailedCategory": said.detailed_category,
            "note": said.note,
        }
        told |= {"tags": _tags(said.tags) or None, "splits": [*map(_split, said.parts)] or None}
        yield _line(
            "annotation",
            {"id": id_, "account": _account(anchor.account_id, owned.get(anchor.account_id)), **_booking(anchor)}
            | {name: value for name, value in told.items() if value is not None},
        )


def read(session: Transaction, user_id: str, text: str, *, now: datetime) -> int:
    """Take over what the user has not said here; how much that was. What is said of bookings that are not there sleeps.
    Raises InvalidWords and InvalidRule."""
    session.hold(user_id)
    known = rules.of_user(session, user_id)
    corrections = rules.corrections(session, user_id)
    owned = accounts.every(session, user_id)
    stored = anchors.of_user(session, user_id)
    whose = anchors.accounts_of(session, user_id)
    taken = {_within(whose, anchor) for anchor in stored.values()}
    added: list[Rule] = []
    count = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        kind, told = _told(number, line)
        try:
            if kind == "rule":
                (rule,) = parse_rules(json.dumps(told))
                if not any(_is_same_rule(rule, other) for other in (*known, *added)):
                    added.append(rule)
            elif kind == "correction":
                if told["key"] not in corrections and told["category"] in CATEGORIES:
                    rules.correct(session, user_id, str(told["key"]), told["category"])
                    count += 1
            else:
                annotation, anchor = _annotation(told, owned)
                if annotation.transaction_id not in stored and _within(whose, anchor) not in taken:
                    annotations.sleep(session, user_id, annotation, anchor, now=now)
                    stored[annotation.transaction_id] = anchor
                    taken.add(_within(whose, anchor))
                    count += 1
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise InvalidWords(f"line {number}: {_reason(error)}") from error
    if added:
        rules.keep(session, user_id, _under_free_ids(known, added))
    anchors.settle(session, user_id)
    return count + len(added)


def _line(kind: str, told: Json) -> str:
    return json.dumps({"kind": kind, **told}, ensure_ascii=False)


def _account(id_: str, account: StoredAccount | None) -> Json:
    if account is None:
        return {"id": id_}
    return {"id": id_, "iban": account.iban, "key": account.stable_key, "currency": account.currency}


def _booking(anchor: Anchor) -> Json:
    return {
        "bookingDate": anchor.booking_date.isoformat(),
        "amount": f"{anchor.amount:f}",
        "currency": anchor.currency,
        "counterpart": anchor.counterpart,
        "place": anchor.place,
        "equalOnes": anchor.equal_ones,
    }


def _told(number: int, line: str) -> tuple[str, Json]:
    try:
        told = json.loads(line)
        kind = told.pop("kind")
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidWords(f"line {number}: not a line of `bankdata words export`") from error
    if kind not in ("rule", "correction", "annotation"):
        raise InvalidWords(f"line {number}: not a line of `bankdata words export`")
    return kind, told


def _tags(said: Mapping[str, Tag]) -> list[Json]:
    return [{"name": tag.name, "at": tag.tagged_at.isoformat()} for tag in said.values()]


def _split(part: Split) -> Json:
    told = {
        "amount": f"{part.amount:f}",
        "category": part.category,
        "detailedCategory": part.detailed_category,
        "note": part.note,
        "tags": _tags(part.tags) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _said(told: Json) -> tuple[str | None, str | None, str | None, Mapping[str, Tag]]:
    """Category, finer category, note and tags of a booking or a part."""
    leaf, category, note = (told.get(name) for name in ("detailedCategory", "category", "note"))
    given = [Tag(str(tag["name"]), datetime.fromisoformat(tag["at"])) for tag in told.get("tags", [])]
    tags = {folded(tag.name): tag for tag in given}
    if category is not None and category not in CATEGORIES:
        raise ValueError("an unknown category")
    if leaf is not None and category_of(leaf) != category:
        raise ValueError("an unknown detailedCategory")
    if note is not None and (not isinstance(note, str) or not note or not is_note(note)):
        raise ValueError("not a note")
    if len(tags) > TAGS_MAX or not all(is_tag(said.name) for said in tags.values()):
        raise ValueError("not tags")
    return category, leaf, note, tags


def _part(told: Json) -> Split:
    category, leaf, note, tags = _said(told)
    if category is None:
        raise ValueError("a part without category")
    return Split(_money(told["amount"]), category, leaf, note, tags)


def _annotation(told: Json, owned: list[StoredAccount]) -> tuple[Annotation, Anchor]:
    category, leaf, note, tags = _said(told)
    parts = [*map(_part, told.get("splits", []))]
    if parts and not SPLITS_MIN <= len(parts) <= SPLITS_MAX:
        raise ValueError("not parts")
    anchor = Anchor(
        _owned(told["account"], owned),
        date.fromisoformat(told["bookingDate"]),
        _money(told["amount"]),
        str(told["currency"]),
        _two_lines(told["counterpart"]),
        _counted(told["place"]),
        _counted(told["equalOnes"]),
    )
    return Annotation(str(told["id"]), category, leaf, note, tags, parts), anchor


def _money(text: str) -> Decimal:
    amount = Decimal(text).quantize(UNIT)
    if not abs(amount) < AMOUNT_END:
        raise ValueError("not an amount")
    return amount


def _owned(account: Json, owned: list[StoredAccount]) -> str:
    """Which account of this user that is, by id, else by its number, which the account may get later."""
    number = account.get("iban") or account.get("key")
    if number is None or any(each.id == account["id"] for each in owned):
        return str(account["id"])
    return anchors.by_number(str(number), str(account["currency"]))


def _within(whose: Mapping[str, str], anchor: Anchor) -> Anchor:
    """The anchor in the account that it means now."""
    return anchor._replace(account_id=whose.get(anchor.account_id, anchor.account_id))


def _two_lines(text: str) -> str:
    if text.count(anchors.PARTING) != 1:
        raise ValueError("not a counterpart")
    return text


def _counted(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise ValueError("not a number")
    return number


def _is_same_rule(one: Rule, other: Rule) -> bool:
    return {**asdict(one), "id": ""} == {**asdict(other), "id": ""}


def _under_free_ids(known: list[Rule], added: list[Rule]) -> list[Rule]:
    """The rules one after the other; those that come later get the next number where theirs is taken."""
    wanted = list(known)
    for rule in added:
        ids = {each.id for each in wanted}
        id_ = next(name for name in (rule.id, *map(str, range(1, len(ids) + 2))) if name not in ids)
        wanted.append(Rule(**{**asdict(rule), "id": id_}))
    return parse_rules(render_rules(wanted))


def _reason(error: Exception) -> str:
    return f"lacks {error}" if isinstance(error, KeyError) else str(error)
