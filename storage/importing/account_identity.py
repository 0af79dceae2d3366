"""Which account of the user a source means: recognised by its ids, its IBAN, an alias, or its bookings."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, count

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.records import AccountRecord, InvalidRecord, StatementRecord, TransactionRecord
from storage.accounts import StoredAccount, every, german_number
from storage.database import Session, put_row
from storage.importing import contributions
from storage.importing.matching.booking_keys import account_id, fingerprint, own_id
from storage.importing.teller import Teller

NEW_ACCOUNT = "new"  # the choice of an account that is not there yet
OWN_IDS_LOOKED_AT = 100  # of a statement; one is enough to know it again
KNOWN_BOOKINGS_MIN = 3  # that prove whose file it is: fewer, such as a fee of the bank, stand in many accounts


class AccountUnclear(InvalidRecord):
    """The file does not say which account it is about, and it may be another one than before. Import it with --account
    and the account's name, or as a new account with a --connection of its own."""

    def __init__(self, candidates: Sequence[StoredAccount]) -> None:
        super().__init__(" ".join((self.__class__.__doc__ or "").split()))
        self.candidates = candidates


class Owner(Struct, frozen=True):
    """The account that bookings go to, and the id (`source_id`) that it would have by its source alone. `account` is
    the source's description; it has a key of its own if the user has said that this is a separate account.
    `is_remembered` says that the source has meant it before (`remember`)."""

    account_id: str
    source_id: str
    account: AccountRecord
    is_remembered: bool = False


def owner(teller: Teller, account: AccountRecord) -> Owner:
    """The account that a source means by this description: the one remembered for its connection, else the one known by
    the same id or an alias, else the one with the same IBAN or German account number in this currency; for an unknown
    one, the id that a new account gets. Stores nothing."""
    session, user, connection = teller.session, teller.user, teller.connection
    met = session.rows(
        "SELECT k.account_id, k.source_id FROM account_keys AS k JOIN accounts AS a ON a.user_id = k.user_id"
        " AND a.id = k.account_id WHERE k.user_id = $1 AND a.user_id = $1 AND k.connection_id = $2"
        " AND k.stable_key = $3 AND k.currency = $4",
        *(user.id, connection.id, account.stable_key, account.currency),
    )
    if met:
        return Owner(met[0]["account_id"], met[0]["source_id"], account, is_remembered=True)
    by_iban, by_key = _own_id(teller, account), _own_id(teller, replace(account, iban=None))
    aliases = session.rows(
        "SELECT source_id, account_id FROM account_aliases WHERE user_id = $1 AND source_id = ANY($2::TEXT[])",
        *(user.id, [by_key, by_iban]),
    )
    known = session.rows(
        "SELECT id FROM (SELECT id, currency, stable_key, concat_ws(' ', iban, former_ibans) AS ibans FROM accounts"
        " WHERE user_id = $1) AS owned WHERE id = ANY($2::TEXT[]) OR (currency = $4 AND (strpos(ibans, $3) > 0"
        " OR (ibans = '' AND stable_key = ANY($5::TEXT[])) OR ibans LIKE '%DE__' || $6 || '%'))",
        *(user.id, [by_key, by_iban], account.iban, account.currency, _german_keys(account.iban)),
        german_number(account.stable_key),
    )
    alias = {row["source_id"]: row["account_id"] for row in aliases}
    ids = [row["id"] for row in known]
    for source in (by_key, by_iban):  # an account that has gained an IBAN keeps its id
        if source in alias:
            return Owner(alias[source], source, account)
        if source in ids:
            return Owner(source, source, account)
    return Owner(ids[0] if ids else by_iban, by_iban, account)


def remember(teller: Teller, reported: AccountRecord, owner: Owner) -> None:
    """Remember which account a live source means, so that it stays the same whatever IBAN the source names later, if
    any."""
    teller.session.execute(
        "INSERT INTO account_keys (user_id, connection_id, stable_key, currency, account_id, source_id)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (user_id, connection_id, stable_key, currency)"
        " DO UPDATE SET account_id = excluded.account_id, source_id = excluded.source_id"
        " WHERE account_keys.account_id <> excluded.account_id",
        *(
            teller.user.id,
            teller.connection.id,
            reported.stable_key,
            reported.currency,
            owner.account_id,
            owner.source_id,
        ),
    )


def anonymous_owner(
    teller: Teller,
    account: AccountRecord,
    *,
    bookings: pl.DataFrame,
    stated: Sequence[StatementRecord],
    batch_id: str,
    told_with: Collection[str],
) -> Owner:
    """The account for a file that names none: a new one for the first such file of its kind, else the one to which this
    very batch was imported before, else the one that came in one file with an account that is found for another
    currency (`told_with`), else the one that already has its bookings (spool.KEYS) or of which the file's balances go
    on. With a name (`is_by_name`) the only one of that name will do, unless it has other bookings on the file's days.
    Raises AccountUnclear if that is no account, or more than one."""
    session, user_id = teller.session, teller.user.id
    natural = owner(teller, account)
    reported = session.rows(
        "SELECT DISTINCT account_id, batch_id = $3 AS is_same FROM contributions WHERE user_id = $1 AND source_id = $2",
        *(user_id, natural.source_id, batch_id),
    )
    again = {row["account_id"] for row in reported if row["is_same"]}
    ids = {natural.account_id, *(row["account_id"] for row in reported)}
    candidates = [each for each in every(session, user_id) if each.id in ids]
    if not candidates:
        return natural
    proven = again or _in_one_file(session, user_id, [each.id for each in candidates], told_with)
    if not proven:
        proven = _with_balance(session, user_id, [each.id for each in candidates], stated, bookings["booking_date"])
        proven |= _with_statement(session, user_id, [each.id for each in candidates], stated, bookings)
        common = {each.id: _common(session, user_id, each.id, natural.source_id, bookings) for each in candidates}
        proven.update(id_ for id_, (known, shared) in common.items() if _is_same(known, shared))
        if account.is_by_name and not proven and len(common) == 1:
            proven.update(id_ for id_, (known, shared) in common.items() if not _is_other(known, shared))
    if len(proven) != 1:
        raise AccountUnclear(candidates)
    return Owner(proven.pop(), natural.source_id, account)


def account_of_export(
    teller: Teller,
    account: AccountRecord,
    records: Sequence[TransactionRecord],
    stated: Sequence[StatementRecord],
) -> str | None:
    """The id of the account that an export of this service is about, if it has no IBAN: the one that has these bookings
    by our own ids (or had them, in the store that wrote the file); for an account without bookings, the one with the
    same key, currency and bank, and of an anonymous one the same balance. None where it has an IBAN, or not exactly one
    account fits. A file may contain any id, so an id counts only with the same day and amount."""
    session, user_id = teller.session, teller.user.id
    if account.iban is not None:
        return None
    if records:
        named = {own: record for record in reversed(records) if (own := own_id(record))}
        if not named:
            return None
        first, record = next(reversed(named.items()))
        stored = session.rows(
            "SELECT account_id AS id, id AS own, booking_date, amount, currency FROM transactions"
            " WHERE user_id = $1 AND (id = ANY($2::TEXT[]) OR strpos(identity, $3) > 0)",
            user_id,
            list(named),
            first.removeprefix("txn_"),  # camt has no room for the dash
        )
        money = ("booking_date", "amount", "currency")
        rows = [
            row for row in stored if all(row[name] == getattr(named.get(row["own"], record), name) for name in money)
        ]
    else:
        rows = session.rows(
            "SELECT id, balance FROM accounts WHERE user_id = $1 AND stable_key = $2 AND currency = $3 AND iban IS NULL"
            " AND ($4::TEXT IS NULL OR bank_name = $4)",
            *(user_id, account.stable_key, account.currency, account.bank_name),
        )
        said = stated[-1].closing if account.is_anonymous else None  # whoever's account of this word it is
        rows = [row for row in rows if said is None or row["balance"] == said]
    found = {row["id"] for row in rows}
    return found.pop() if len(found) == 1 else None


def chosen_owner(teller: Teller, account: AccountRecord, choice: str, currencies: Collection[str]) -> Owner:
    """The account that the user has chosen, by its id or as NEW_ACCOUNT; in another one of the file's `currencies` the
    account that came in one file with the chosen one, or a new one. What the source names goes there from now on,
    unless that has an account already, or the source names none. Raises InvalidRecord where the currencies differ."""
    if choice == NEW_ACCOUNT:
        return _next_account(teller, account)
    natural = owner(teller, account)
    stored = every(teller.session, teller.user.id)
    currency = next(each.currency for each in stored if each.id == choice)
    if currency != account.currency and currency in currencies:
        others = [each.id for each in stored if each.currency == account.currency]
        known = sorted(_in_one_file(teller.session, teller.user.id, others, [choice]))
        if known:
            return Owner(known[0], natural.source_id, account)
        return _next_account(teller, account) if natural.account_id in others else natural
    if currency != account.currency:
        raise InvalidRecord("The file is in {theirs}, the account in {ours}.", theirs=account.currency, ours=currency)
    is_free = natural.account_id == natural.source_id and all(each.id != natural.source_id for each in stored)
    if is_free and not account.is_anonymous:
        add_alias(teller.session, user_id=teller.user.id, source_id=natural.source_id, account_id=choice)
    return Owner(choice, natural.source_id, account)


def still_there(session: Session, user_id: str, account_id: str) -> str | None:
    """The id of the account, or of the one into which it was merged; None if it was deleted."""
    rows = session.rows(
        "SELECT id FROM accounts WHERE user_id = $1 AND id IN (coalesce((SELECT account_id FROM account_aliases"
        " WHERE user_id = $1 AND source_id = $2), $2))",
        *(user_id, account_id),
    )
    return str(rows[0]["id"]) if rows else None


def add_alias(session: Session, *, user_id: str, source_id: str, account_id: str) -> None:
    """Let what sources name as the account `source_id` go to the account `account_id` from now on, and with it what has
    gone to an account of the id `source_id` so far."""
    for table in ("account_keys", "account_aliases"):
        session.execute(
            f"UPDATE {table} SET account_id = $3 WHERE user_id = $1 AND account_id = $2",
            *(user_id, source_id, account_id),
        )
    alias = {"user_id": user_id, "source_id": source_id, "account_id": account_id}
    put_row(session, "account_aliases", ("user_id", "source_id"), **alias)


def _german_keys(iban: str | None) -> list[str]:
    """Bank code and number of a German account, as files without an IBAN write them, with leading zeros and without;
    empty for another IBAN."""
    if iban is None or not iban.startswith("DE"):
        return []
    return [f"{iban[4:12]}/{number}" for number in (iban[12:], iban[12:].lstrip("0"))]


def _in_one_file(session: Session, user_id: str, account_ids: Sequence[str], told_with: Collection[str]) -> set[str]:
    """Those of the accounts that came in one file with an account of `told_with`."""
    rows = session.rows(
        "SELECT DISTINCT one.account_id FROM contributions AS one JOIN contributions AS other"
        " ON other.user_id = one.user_id AND other.batch_id = one.batch_id WHERE one.user_id = $1"
        " AND other.user_id = $1 AND one.account_id = ANY($2::TEXT[]) AND other.account_id = ANY($3::TEXT[])",
        *(user_id, list(account_ids), list(told_with)),
    )
    return {row["account_id"] for row in rows}


def _with_balance(
    session: Session, user_id: str, account_ids: Sequence[str], stated: Sequence[StatementRecord], days: pl.Series
) -> set[str]:
    """Those of the accounts that have no booking between the first and the last of the `days`, and whose last balance
    before is the file's opening one, or whose next one after is its closing one; zero proves nothing."""
    rows = session.rows(
        "SELECT account_id FROM statements AS one WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
        " AND NOT EXISTS (SELECT 1 FROM transactions WHERE user_id = $1 AND account_id = one.account_id"
        " AND booking_date > $3 AND booking_date < $4)"
        " AND ((closing = $5 AND closing_date <= $3 AND NOT EXISTS (SELECT 1 FROM transactions WHERE user_id = $1"
        " AND account_id = one.account_id AND booking_date > one.closing_date AND booking_date < $3))"
        " OR (opening = $6 AND opening_date >= $4 AND NOT EXISTS (SELECT 1 FROM transactions WHERE user_id = $1"
        " AND account_id = one.account_id AND booking_date < one.opening_date AND booking_date > $4)))",
        *(user_id, list(account_ids), days.min(), days.max(), stated[0].opening or None, stated[-1].closing or None),
    )
    return {row["account_id"] for row in rows}


def _with_statement(
    session: Session,
    user_id: str,
    account_ids: Sequence[str],
    stated: Sequence[StatementRecord],
    bookings: pl.DataFrame,
) -> set[str]:
    """Those of the accounts with a statement that begins or ends with the file's balance, of which one has all bookings
    of the other: the file was taken at another time of its last day; zero proves nothing."""
    rows = session.rows(
        "SELECT account_id, told FROM statements WHERE user_id = $1 AND account_id = ANY($2::TEXT[]) AND adds_up"
        " AND told <> '' AND (opening = $3 OR closing = $4)",
        *(user_id, list(account_ids), stated[0].opening or None, stated[-1].closing or None),
    )
    asked = "SELECT booking_date, amount FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])"
    ours, found = Counter(bookings.select("booking_date", "amount").iter_rows()), set()
    for row in rows if ours else ():
        theirs = Counter(
            (one["booking_date"], one["amount"]) for one in session.rows(asked, user_id, row["told"].split())
        )
        if theirs and (theirs <= ours or ours <= theirs):
            found.add(row["account_id"])
    return found


def _is_same(known: int, shared: int) -> bool:
    return known >= KNOWN_BOOKINGS_MIN and known * 2 >= shared


def _is_other(known: int, shared: int) -> bool:
    return shared >= KNOWN_BOOKINGS_MIN and known * 2 < shared


def _common(session: Session, user_id: str, account_id: str, source_id: str, bookings: pl.DataFrame) -> tuple[int, int]:
    """How many of the file's bookings the account has, either as stored or as this source reported them before; and how
    many either has on the days that the other covers (the last day aside, which may be incomplete)."""
    if bookings.is_empty():
        return 0, 0
    prints = {"fingerprint": pl.String(), "booking_date": pl.Date()}
    stored = session.frame(
        "SELECT fingerprint, booking_date FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND NOT is_adjusting_entry",
        *(user_id, account_id),
        schema=prints,
    )
    of_source = [
        each for each in contributions.of_accounts(session, user_id, [account_id]) if each.source_id == source_id
    ]
    reported_before = [
        (fingerprint(record), record.booking_date) for record in contributions.bookings_of(session, user_id, of_source)
    ]
    earlier = pl.DataFrame(reported_before, schema=prints, orient="row")
    days = pl.concat([stored["booking_date"], earlier["booking_date"]])
    if days.is_empty():
        return 0, 0
    reported, there, before = (Counter(each["fingerprint"]) for each in (bookings, stored, earlier))
    known = (reported & (there | before)).total()
    shared = max(
        int(((one >= other.min()) & (one < other.max())).sum())
        for one, other in ((bookings["booking_date"], days), (stored["booking_date"], bookings["booking_date"]))
    )
    return known, shared


def _own_id(teller: Teller, account: AccountRecord) -> str:
    return account_id(user_name=teller.user.name, connection_id=teller.connection.id, account=account)


def _next_account(teller: Teller, account: AccountRecord) -> Owner:
    """The first account of this kind that does not exist yet: N26, N26 2, N26 3."""
    taken = {each.id for each in every(teller.session, teller.user.id)}
    keys = chain([account.stable_key], (f"{account.stable_key} {number}" for number in count(2)))
    named = (replace(account, stable_key=key) for key in keys)
    free = next(each for each in named if _own_id(teller, each) not in taken)
    return Owner(_own_id(teller, free), _own_id(teller, account), free)
