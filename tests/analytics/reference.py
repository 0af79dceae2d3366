"""The analyses once more, slow and obvious: plain loops over plain values, exact fractions, no frames."""

from collections.abc import Collection
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import cast

from analytics.letters import fold, plain
from analytics.searching.filters import Query
from tests.analytics.ledgers import Row

DIGITS = {"JPY": 0, "KWD": 3}  # of the currencies that the properties draw, where they are not 2


def amount_of(row: Row) -> Decimal:
    return cast(Decimal, row["amount"])


def day_of(row: Row) -> date:
    return cast(date, row["booking_date"])


def rate(currency: str, day: date, rates: list[Row]) -> Fraction | None:
    """The rate of the day or the last one before it; a null says that quotation ended."""
    if currency == "EUR":
        return Fraction(1)
    found = [row for row in rates if row["currency"] == currency and cast(date, row["day"]) <= day]
    if not found:
        return None
    last = max(found, key=lambda row: cast(date, row["day"]))["rate"]
    return None if last is None else Fraction(cast(Decimal, last))


def converted(amount: Decimal | Fraction, *, source: str, target: str, day: date, rates: list[Row]) -> Fraction | None:
    """Half to even at the target's digits: `round` of a fraction does just that; None without a rate, and for more than
    anybody has."""
    if source == target:
        return Fraction(round(Fraction(amount), DIGITS.get(target, 2)))
    bought, sold = rate(target, day, rates), rate(source, day, rates)
    if bought is None or sold is None or abs(Fraction(amount)) >= 10**17:
        return None
    return Fraction(round(Fraction(amount) * bought / sold, DIGITS.get(target, 2)))


def home_amount(row: Row, currency: str, rates: list[Row]) -> Fraction | None:
    source = cast(str, row["currency"])
    return converted(amount_of(row), source=source, target=currency, day=day_of(row), rates=rates)


def crosses_border(row: Row, selection: Collection[str]) -> bool:
    is_transfer_inside = row["transfer_id"] is not None and row["transfer_account_id"] in selection
    return row["account_id"] in selection and not row["is_adjusting_entry"] and not is_transfer_inside


def monthly_cashflow(
    rows: list[Row], *, selection: Collection[str], months: int, today: date, currency: str, rates: list[Row]
) -> list[tuple[date, Fraction, Fraction, Fraction, list[str]]]:
    """Month by month from today back, until there are enough; the currencies that had no rate come last."""
    first = min((day_of(row) for row in rows if row["account_id"] in selection), default=today)
    listed: list[tuple[date, Fraction, Fraction, Fraction, list[str]]] = []
    month = today.replace(day=1)
    while len(listed) < months and (len(listed) < 120 or month >= first.replace(day=1)):
        income = expenses = Fraction(0)
        without_rate: set[str] = set()
        for row in rows:
            if crosses_border(row, selection) and day_of(row).replace(day=1) == month:
                amount = home_amount(row, currency, rates)
                if amount is None:
                    without_rate.add(cast(str, row["currency"]))
                elif amount_of(row) < 0:
                    expenses -= amount
                else:
                    income += amount
        listed.insert(0, (month, income, expenses, income - expenses, sorted(without_rate)))
        month = (month - timedelta(days=1)).replace(day=1)
    return listed


def category(row: Row) -> str:
    return cast(str | None, row["category"]) or "OTHER"


def known_by(row: Row) -> set[str]:
    """What tells the counterpart: IBAN and names."""
    names = {cast(str, row[name]).lower() for name in ("counterpart_name", "merchant_name") if row[name]}
    return names | ({cast(str, row["counterpart_iban"])} if row["counterpart_iban"] else set())


def is_refund(row: Row, rows: list[Row], selection: Collection[str]) -> bool:
    if amount_of(row) <= 0 or category(row) in ("SALARY", "TRANSFER") or not crosses_border(row, selection):
        return False
    return any(
        crosses_border(other, selection)
        and amount_of(other) < 0
        and day_of(other) <= day_of(row)
        and known_by(other) & known_by(row)
        and (category(row) != "RENT" or category(other) == "RENT")
        for other in rows
    )


def merchant(row: Row) -> str | None:
    cash = "Cash" if row.get("type") in ("cash_withdrawal", "cash_deposit") else None
    return cast(str | None, row["merchant_name"] or cash or row["counterpart_name"] or None)


def words(text: str) -> list[str]:
    """The runs of letters and digits."""
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


def has_words(row: Row, wanted: str) -> bool:
    texts = [cast(str, row[name]) for name in ("merchant_name", "counterpart_name", "purpose") if row[name]]
    said = [word for text in texts for spelled in (plain(text), fold(text)) for word in words(spelled)]
    return all(any(word.startswith((each, fold(each))) for word in said) for each in words(plain(wanted)))


def is_found(
    row: Row, query: Query, wanted: str, *, selection: Collection[str], currency: str, rates: list[Row]
) -> bool:
    """One row after another, one rule after another; `wanted` are the words as they are typed."""
    size = abs(round(Fraction(amount_of(row)), DIGITS.get(cast(str, row["currency"]), 2)))
    home = home_amount(row, currency, rates)
    name = merchant(row)
    return (
        (query.amount_min is None or size >= query.amount_min)
        and (query.amount_max is None or size <= query.amount_max)
        and (query.direction != "in" or amount_of(row) > 0)
        and (query.direction != "out" or amount_of(row) < 0)
        and (not query.categories or (row["category"] or "OTHER") in query.categories)
        and (not query.types or row["type"] in query.types)
        and (query.merchant is None or (name is not None and name.lower() == query.merchant.lower()))
        and (query.counterpart_iban is None or row["counterpart_iban"] == query.counterpart_iban)
        and has_words(row, wanted)
        and (query.flag != "possible_duplicate" or bool(row["is_potential_duplicate"]))
        and (query.flag != "adjusting_entry" or bool(row["is_adjusting_entry"]))
        and (query.flag != "uncategorised" or bool(row["is_uncategorised"]))
        and (query.flag != "unconverted" or home is None)
        and (not query.counted or (crosses_border(row, selection) and home is not None))
    )


def category_costs(
    rows: list[Row], *, selection: Collection[str], today: date, currency: str, rates: list[Row]
) -> dict[str, Fraction]:
    """What each category cost in the last 30 days; categories that cost nothing are absent."""
    costs: dict[str, Fraction] = {}
    for row in rows:
        if not (today - timedelta(days=30) < day_of(row) <= today) or not crosses_border(row, selection):
            continue
        amount = home_amount(row, currency, rates)
        if amount is not None and (amount_of(row) < 0 or is_refund(row, rows, selection)):
            costs[category(row)] = costs.get(category(row), Fraction(0)) - amount
    return {name: cost for name, cost in costs.items() if cost > 0}


def top_categories(costs: dict[str, Fraction]) -> list[tuple[str, Fraction, int]]:
    """At most five, dearest first, then by name, each with its percentage, halves up."""
    total = sum(costs.values(), Fraction(0))
    ordered = sorted(costs.items(), key=lambda item: (-item[1], item[0]))[:5]
    return [(name, cost, int(cost * 100 / total + Fraction(1, 2))) for name, cost in ordered]


SAYS_WHERE = {"cash_withdrawal", "cash_deposit", "card_payment", "fee", "interest", "salary"}
Pairing = dict[str, tuple[str, str | None, str]]


def pair(legs: list[Row], accounts: list[Row]) -> Pairing:
    """Own account, other leg and rule by row id."""
    own = {cast(str, account["iban"]): cast(str, account["id"]) for account in accounts if account["iban"]}
    kinds = {account["id"]: account["kind"] for account in accounts}
    target: dict[str, str | None] = {}
    rows: list[Row] = []
    settling: list[Row] = []
    for row in sorted(legs, key=lambda leg: cast(str, leg["id"])):
        iban = cast(str | None, row["counterpart_iban"])
        if row["is_adjusting_entry"] or amount_of(row) == 0:
            continue
        if iban and iban not in own:
            pays = amount_of(row) < 0 and kinds[row["account_id"]] in (None, "checking", "other")
            if pays and row["detailed_category"] == "CARD_SETTLEMENT":
                settling.append(row)
            continue
        named = own[iban] if iban else None
        elsewhere = None if named == row["account_id"] else named
        if elsewhere is None and row.get("type") in SAYS_WHERE:
            continue
        target[cast(str, row["id"])] = elsewhere
        rows.append(row)
    out = [row for row in rows if amount_of(row) < 0]
    into = [row for row in rows if amount_of(row) > 0]
    mate = _mates_by_iban(out, into, target)
    rules: Pairing = {}
    for row in rows:
        key = cast(str, row["id"])
        other = mate.get(key)
        if target[key] is not None:
            rules[key] = (
                cast(str, target[key]),
                cast(str, other["id"]) if other else None,
                "counterpart_iban_is_own_account",
            )
        elif other is not None:
            rules[key] = (cast(str, other["account_id"]), cast(str, other["id"]), "counterpart_iban_of_other_leg")
    on_cards = [row for row in into if kinds[row["account_id"]] == "credit_card" and row["id"] not in mate]
    for row in settling:
        candidates = [other for other in on_cards if _is_opposite(row, other)]
        if len(candidates) == 1 and [other for other in settling if _is_opposite(other, candidates[0])] == [row]:
            (card,) = candidates
            named = target[cast(str, card["id"])]
            if named in (None, row["account_id"]):
                payer, rule = cast(str, row["account_id"]), "card_settlement_within_4_days"
                rules[cast(str, row["id"])] = (cast(str, card["account_id"]), cast(str, card["id"]), rule)
                by = "counterpart_iban_is_own_account" if named else rule
                rules[cast(str, card["id"])] = (payer, cast(str, row["id"]), by)
    silent_out = [row for row in out if row["id"] not in rules]
    silent_in = [row for row in into if row["id"] not in rules]
    for row in silent_out:
        candidates = [other for other in silent_in if _is_opposite(row, other)]
        if len(candidates) == 1 and [other for other in silent_out if _is_opposite(other, candidates[0])] == [row]:
            for one, two in ((row, candidates[0]), (candidates[0], row)):
                rules[cast(str, one["id"])] = (
                    cast(str, two["account_id"]),
                    cast(str, two["id"]),
                    "only_opposite_amount_within_4_days",
                )
    return rules


def _mates_by_iban(out: list[Row], into: list[Row], target: dict[str, str | None]) -> dict[str, Row]:
    """Best evidence first, then the nearest day, the later of two, then the order of ids."""
    mate: dict[str, Row] = {}
    for evidence in ((True, True), (True, False), (False, True)):
        for days in (0, 1, -1, 2, -2, 3, -3, 4, -4):
            for one in out:
                for two in into:
                    if one["id"] in mate or two["id"] in mate or (day_of(two) - day_of(one)).days != days:
                        continue
                    says, is_said = target[cast(str, one["id"])], target[cast(str, two["id"])]
                    if (
                        _is_opposite(one, two)
                        and (says is not None, is_said is not None) == evidence
                        and says in (None, two["account_id"])
                        and is_said in (None, one["account_id"])
                    ):
                        mate[cast(str, one["id"])], mate[cast(str, two["id"])] = two, one
    for days in (0, 1, -1, 2, -2, 3, -3, 4, -4):
        for one, two in _by_size(out, into, target, mate, days):
            lost = -amount_of(one) - amount_of(two)
            if one["currency"] != two["currency"] or 0 <= lost <= -amount_of(one) / 10:
                mate[cast(str, one["id"])], mate[cast(str, two["id"])] = two, one
    return mate


def _by_size(
    out: list[Row], into: list[Row], target: dict[str, str | None], mate: dict[str, Row], days: int
) -> list[tuple[Row, Row]]:
    """The legs that name each other's account, the largest that leave on a day with the largest that arrive so many
    days later."""
    found: list[tuple[Row, Row]] = []
    left = [row for row in out if row["id"] not in mate and target[cast(str, row["id"])] is not None]
    for key in {(row["account_id"], target[cast(str, row["id"])], day_of(row)) for row in left}:
        account, other, day = key
        leaving = [row for row in left if (row["account_id"], target[cast(str, row["id"])], day_of(row)) == key]
        arriving = [
            row
            for row in into
            if row["id"] not in mate
            and (row["account_id"], target[cast(str, row["id"])]) == (other, account)
            and day_of(row) == day + timedelta(days=days)
        ]
        leaving.sort(key=lambda row: (amount_of(row), row["id"]))
        arriving.sort(key=lambda row: (-amount_of(row), row["id"]))
        found += zip(leaving, arriving, strict=False)
    return found


def _is_opposite(one: Row, two: Row) -> bool:
    return (
        amount_of(one) == -amount_of(two)
        and one["currency"] == two["currency"]
        and one["account_id"] != two["account_id"]
        and abs((day_of(one) - day_of(two)).days) <= 4
    )


def lookalikes(new: list[Row], stored: list[Row]) -> set[str]:
    """Ids of new rows that look like one before them that came another way."""
    fresh = {row["id"] for row in new}
    before = [row for row in stored if row["id"] not in fresh]
    found: set[str] = set()
    for row in new:
        if any(_looks_like(row, other) for other in before):
            found.add(cast(str, row["id"]))
        before.append(row)
    return found


def _looks_like(row: Row, other: Row) -> bool:
    if row["is_adjusting_entry"] or other["is_adjusting_entry"]:
        return False
    if any(row[name] != other[name] for name in ("account_id", "amount", "currency")):
        return False
    if abs((day_of(row) - day_of(other)).days) > 3:
        return False
    if (row["batch_id"], row["connection_id"]) == (other["batch_id"], other["connection_id"]):
        return False
    if any(_letters(row[name]) and _letters(row[name]) == _letters(other[name]) for name in _COUNTERPART):
        return True
    one, two = sorted((_letters(row["purpose"]), _letters(other["purpose"])), key=len)
    return bool(one) and (one == two or (len(one) >= 12 and one in two))


_COUNTERPART = ("counterpart_iban", "counterpart_name")


def _letters(text: object) -> str:
    folded = "" if text is None else str(text).lower()
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        folded = folded.replace(umlaut, letters)
    return "".join(character for character in folded if character.isalnum())
