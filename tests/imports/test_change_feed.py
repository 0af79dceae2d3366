"""Copies kept by the feeds of changes are the full list, whatever happens to the data and however a client reads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from handlers.commands.table import perform
from handlers.operations.changes import feeds
from handlers.server import application
from handlers.work.services import open_services
from storage import accounts, backup, connections, jobs, store_facts, users
from storage.changes import feed, incarnation
from storage.connections import StoredConnection
from storage.database import Conflict, Transaction
from storage.importing import ingest, runs
from storage.importing.batches import read_batch
from storage.migrations import runner
from storage.oauth.grants import Terms
from storage.undo_and_merge import merges, rebuild, undoable_imports
from tests.conftest import examples, seeds
from tests.imports.household import Household
from tests.imports.mirrors import Mirror, Served, exact

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")
CARD = AccountRecord(stable_key="card", currency="EUR")
NAMED_CARD = replace(CARD, name="Card", kind="credit_card")
SAVINGS = AccountRecord(
    stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR", kind="savings"
)
SHOPS = ("Rewe", "Kino", "Zwetschge", "Pflaume", "Spotify")


def booked(day: date | str, amount: Decimal | str, name: str, purpose: str, **further: object) -> TransactionRecord:
    said = {"currency": "EUR", "counterpart_name": name, "purpose": purpose, **further}
    moment = day if isinstance(day, date) else date.fromisoformat(day)
    return TransactionRecord(booking_date=moment, amount=Decimal(amount), **said)  # type: ignore[arg-type]  # as named


@dataclass
class Life:
    """What happens to a household's data."""

    eva: Household
    live: StoredConnection = field(init=False)
    files: StoredConnection = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.live, self.files = (
            self.eva.services.everybody.atomically(
                lambda session, connector=connector: connections.add(  # type: ignore[misc]  # bound at once
                    session,
                    user_id=self.eva.user.id,
                    user_name="eva",
                    connector=connector,
                    bank_name=connector,
                    settings={},
                    now=self.eva.services.clock.now(),
                )
            )
            for connector in ("demo", "uploads")
        )

    def bring(
        self,
        account: AccountRecord,
        *records: TransactionRecord,
        statement: StatementRecord | None = None,
        of: StoredConnection | None = None,
    ) -> None:
        """A whole import: job, batch, end."""
        self.number += 1
        self.eva.services.clock.offset += timedelta(seconds=1)
        services, connection = self.eva.services, of or self.live
        flat: list[Record] = [account, *records, *([statement] if statement else [])]
        read = read_batch(Batch(id=f"batch{self.number}", records=iter(flat)), today=services.clock.today())

        def work(session: Transaction) -> None:
            now = services.clock.now()
            job = jobs.start(
                session, user_id=connection.user_id, connection_id=connection.id, cooldown=timedelta(), now=now
            )
            assert job is not None
            runs.store_batch(session, job, connection, read, now=now)
            runs.complete(session, job, now=now)

        services.everybody.atomically(work)

    def do(self, command: str, **arguments: object) -> None:
        """A command of the user's."""
        perform(self.eva.services, command, {"user": "eva", **arguments}, self.eva)

    def account(self, record: AccountRecord) -> str | None:
        """The id of this account, hidden or not, while there is one."""
        every = accounts.every(self.eva.services.everybody, self.eva.user.id)
        return next((each.id for each in every if each.stable_key == record.stable_key), None)


@pytest.fixture
def life(eva: Household) -> Life:
    return Life(eva)


@pytest.fixture
def served(eva: Household) -> Served:
    return Served(eva)


def kinds(page: dict[str, list[object]]) -> tuple[int, int, int]:
    """How many are added, modified and removed."""
    return len(page["added"]), len(page["modified"]), len(page["removed"])


@pytest.mark.requirement("changes.promise")
@pytest.mark.long
def test_what_is_new_different_and_gone_is_told_once_each_in_its_list(life: Life, served: Served) -> None:
    first, second = booked("2026-03-02", "-5.00", "Rewe", "Brot"), booked("2026-03-03", "-7.00", "Kino", "Film")
    life.bring(GIRO, first, second, of=life.files)
    mirror = Mirror(served.client())
    mirror.read()
    assert (kinds(mirror.pages[-1]), mirror.rows) == ((2, 0, 0), served.listed())
    mirror.read()
    assert kinds(mirror.pages[-1]) == (0, 0, 0)
    life.bring(GIRO, first, replace(second, purpose="Film und noch viel mehr davon"), of=life.files)
    mirror.read()
    assert kinds(mirror.pages[-1]) == (0, 1, 0)
    [_, undone] = undoable_imports.of_user(life.eva.services.everybody, life.eva.user.id)
    life.eva.undo(undone.job_id)
    mirror.read()
    assert (kinds(mirror.pages[-1]), mirror.rows) == ((0, 1, 0), served.listed())
    [imported] = undoable_imports.of_user(life.eva.services.everybody, life.eva.user.id)
    life.eva.undo(imported.job_id)
    mirror.read()
    assert (kinds(mirror.pages[-1]), mirror.rows) == ((0, 0, 2), {})
    life.bring(GIRO, first, of=life.files)
    mirror.read()
    assert (kinds(mirror.pages[-1]), mirror.rows) == ((1, 0, 0), served.listed())
    assert mirror.restarts == 0


@pytest.mark.requirement("changes.promise")
@pytest.mark.long
def test_what_changes_behind_a_reader_within_a_run_comes_once_more_and_nothing_begins_again(
    life: Life, served: Served
) -> None:
    rows = [booked(f"2026-03-0{n}", f"-{n}.00", SHOPS[n], f"{n}") for n in range(1, 5)]
    for row in rows:
        life.bring(GIRO, row, of=life.files)
    mirror = Mirror(served.client(), limit=2)
    assert not mirror.read(pages_max=1)
    life.bring(GIRO, replace(rows[0], purpose="1 und noch viel mehr davon"), of=life.files)
    last = undoable_imports.of_user(life.eva.services.everybody, life.eva.user.id)[1]
    life.eva.undo(last.job_id)
    mirror.read()
    assert [(kinds(page), page["hasMore"]) for page in mirror.pages] == [
        ((2, 0, 0), True),
        ((2, 0, 0), True),
        ((1, 0, 1), False),
    ]
    assert (mirror.rows, mirror.restarts) == (served.listed(), 0)


@pytest.mark.requirement("changes.promise")
@pytest.mark.long
def test_an_account_that_is_hidden_takes_its_rows_along_and_brings_them_back(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    life.bring(SAVINGS, booked("2026-03-02", "50.00", "Eva", "Sparen"), of=life.files)
    rows, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    early = rows.copy()
    for each in (rows, owned):
        each.read()
    savings = life.account(SAVINGS)
    life.do("accounts hide", account=savings, is_hidden=True)
    life.bring(SAVINGS, booked("2026-03-04", "60.00", "Eva", "Mehr"), of=life.files)
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), rows.rows) == ((0, 0, 1), served.listed())
    assert (kinds(owned.pages[-1]), owned.rows) == ((0, 0, 1), served.listed_accounts())
    early.read()
    assert kinds(early.pages[-1]) == (1, 0, 0), "who begins now is not told what was gone before"
    life.do("accounts show", account=savings, is_hidden=False)
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), rows.rows) == ((2, 0, 0), served.listed())
    assert (kinds(owned.pages[-1]), owned.rows) == ((1, 0, 0), served.listed_accounts())


@pytest.mark.requirement("changes.promise")
def test_what_becomes_known_of_an_account_later_changes_its_rows_and_a_failure_only_the_account(
    life: Life, served: Served
) -> None:
    life.bring(CARD, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"), of=life.files)
    rows, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    for each in (rows, owned):
        each.read()
    life.bring(NAMED_CARD)
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), rows.rows) == ((0, 1, 0), served.listed())
    assert (kinds(owned.pages[-1]), owned.rows) == ((0, 1, 0), served.listed_accounts())
    database, user_id = life.eva.services.everybody, life.eva.user.id
    database.atomically(
        lambda session: connections.record_failure(session, user_id, life.live.id, status="REAUTH_REQUIRED")
    )
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), kinds(owned.pages[-1])) == ((0, 0, 0), (0, 1, 0))
    assert owned.rows == served.listed_accounts()
    assert {each["bankConnection"]["status"] for each in owned.rows.values()} == {"ACTIVE", "REAUTH_REQUIRED"}


@pytest.mark.requirement("changes.promise")
@pytest.mark.long
def test_an_adjusting_entry_changes_goes_and_comes_back(life: Life, served: Served) -> None:
    def stated(opening: str, first: str, closing: str, last: str) -> StatementRecord:
        days = {"opening_date": date.fromisoformat(first), "closing_date": date.fromisoformat(last)}
        money = {"opening": Decimal(opening), "closing": Decimal(closing)}
        return StatementRecord(**money, **days, is_authoritative=True)  # type: ignore[arg-type]  # as named

    mirror = Mirror(served.client())
    life.bring(
        GIRO, booked("2026-01-05", "-100", "A", "a"), statement=stated("1000", "2025-12-31", "900", "2026-01-31")
    )
    life.bring(GIRO, booked("2026-03-05", "-50", "B", "b"), statement=stated("700", "2026-02-28", "650", "2026-03-31"))
    mirror.read()
    told = []
    for amount, purpose in (("-150", "c"), ("-50", "d"), ("-20", "e")):
        life.bring(GIRO, booked("2026-02-10", amount, "C", purpose), of=life.files)
        mirror.read()
        assert mirror.rows == served.listed()
        told.append(kinds(mirror.pages[-1]))
    assert told == [(1, 1, 0), (1, 0, 1), (2, 0, 0)]


@pytest.mark.requirement("changes.promise")
def test_what_a_bank_takes_back_is_removed_and_added_when_it_is_back(life: Life, served: Served) -> None:
    rows = [booked(f"2026-11-0{n}", f"-{n}.00", SHOPS[n], "x", provider_id=f"p{n}") for n in range(1, 5)]
    window = {"told_from": date(2026, 11, 1), "told_until": date(2026, 11, 20), "closing_date": date(2026, 11, 20)}

    def sync(*told: TransactionRecord, balance: str) -> tuple[int, int, int]:
        life.eva.services.clock.offset += timedelta(hours=1)
        life.bring(GIRO, *told, statement=StatementRecord(**window, closing=Decimal(balance)))  # type: ignore[arg-type]
        mirror.read()
        assert mirror.rows == served.listed()
        return kinds(mirror.pages[-1])

    mirror = Mirror(served.client())
    assert sync(*rows, balance="100") == (4, 0, 0)
    assert sync(*rows[:2], rows[3], balance="103") == (0, 0, 1)
    assert sync(*rows, balance="100") == (1, 0, 0)


@pytest.mark.requirement("changes.cursors")
def test_a_cursor_that_is_not_genuine_is_400_and_one_of_other_accounts_410(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    life.bring(SAVINGS, booked("2026-03-02", "50.00", "Eva", "Sparen"), of=life.files)
    giro, savings = life.account(GIRO), life.account(SAVINGS)
    whole, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    some = Mirror(served.client(), query={"accountIds": f"{giro}"})
    narrow = Mirror(served.client(Terms(accounts=(str(giro),))))
    others = Mirror(served.client(Terms(accounts=(str(giro),), all_but=True)))
    for each in (whole, owned, some, narrow, others):
        each.read()
    assert some.rows == narrow.rows == served.listed({str(giro)})
    assert others.rows == served.listed({str(savings)})
    other_spelling = chr(ord(whole.cursor[-1]) + 1)  # of the bits that the last letter says for nothing
    forged = [
        whole.cursor[:-1] + other_spelling,
        whole.cursor[:-1] + ("A" if whole.cursor[-1] != "A" else "B"),
        "A" + whole.cursor,
        "AAAA",
        "AAB",
        "A",
    ]

    def status(mirror: Mirror, cursor: str) -> int:
        return mirror.client.get(mirror.path, params={"cursor": cursor, **mirror.query}).status_code

    assert [status(whole, each) for each in [*forged, owned.cursor]] == [400] * 7
    assert [status(owned, each) for each in [*forged, whole.cursor]] == [400] * 7
    for mirror in (whole, some, narrow, others):
        for of_other in (whole, some, narrow, others):
            assert status(mirror, of_other.cursor) == (200 if mirror is of_other else 410)
    assert whole.client.get(whole.path, params={"accountIds": "acc_unknown"}).status_code == 400
    life.eva.services.clock.offset += timedelta(days=399)
    fresh = Mirror(served.client())
    assert status(fresh, whole.cursor) == 200
    life.eva.services.clock.offset += timedelta(days=2)
    assert status(Mirror(served.client()), whole.cursor) == 410


@pytest.mark.requirement("changes.cursors")
def test_a_cursor_of_another_user_is_400(eva: Household) -> None:
    services = eva.services
    tom = users.add(
        services.everybody,
        name="tom",
        password_hash=None,
        has_subscription=True,
        home_currency="EUR",
        now=services.clock.now(),
    )
    mine = Mirror(Served(eva).client())
    mine.read()
    eva.user = tom
    theirs = Served(eva).client()
    assert theirs.get(mine.path, params={"cursor": mine.cursor}).status_code == 400


@pytest.mark.requirement("changes.cursors")
def test_a_state_above_the_present_one_is_410(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    rows, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    for each in (rows, owned):
        each.read()
    database = life.eva.services.everybody
    database.execute("UPDATE users SET state = state - 1 WHERE id = $1", life.eva.user.id)
    life.eva.services.store.state(life.eva.user.id)
    if not database.is_shared:
        life.eva.services.store._states._known.clear()  # type: ignore[attr-defined]  # as after a start
    for each in (rows, owned):
        each.read()
        assert each.restarts == 1
        assert each.rows == (served.listed() if each is rows else served.listed_accounts())


@pytest.mark.requirement("changes.promise")
def test_one_import_comes_newest_first_and_a_cursor_of_the_version_before_begins_it_again(
    life: Life, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = ("2026-03-03", "2026-03-05", "2026-03-04", "2026-03-05")
    life.bring(GIRO, *(booked(day, "-5.00", shop, "Brot") for day, shop in zip(days, SHOPS, strict=False)))
    client = served.client()

    def page(cursor: str | None) -> tuple[list[str], str]:
        asked = f"/transactions/changes?limit=1{f'&cursor={cursor}' if cursor else ''}"
        answer = exact(client.get(asked).text)
        return [each["bookingDate"][:10] for each in answer["added"]], answer["nextCursor"]

    found, cursor = [], None
    for _ in days:
        some, cursor = page(cursor)
        found += some
    assert found == ["2026-03-05", "2026-03-05", "2026-03-04", "2026-03-03"]
    assert page(cursor)[0] == []
    with monkeypatch.context() as before:
        before.setattr(feed, "changed_at", lambda _day, id_: id_)
        _, old = page(None)
    assert page(old)[0] == ["2026-03-05"]


@pytest.mark.requirement("changes.promise")
def test_a_poll_without_news_reads_no_row(life: Life, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    mirrors = [Mirror(served.client()), Mirror(served.client(), "/accounts/changes")]
    for each in mirrors:
        each.read()
    monkeypatch.setattr(feeds, "feed", None)
    monkeypatch.setattr(feeds, "accounts", None)
    for each in mirrors:
        before = each.rows
        each.read()
        assert (kinds(each.pages[-1]), each.rows) == ((0, 0, 0), before)


@pytest.mark.requirement("changes.promise")
def test_what_is_gone_is_forgotten_after_400_days_by_the_journal(life: Life) -> None:
    first, second = booked("2026-03-02", "-5.00", "Rewe", "Brot"), booked("2026-03-03", "-7.00", "Kino", "Film")
    life.bring(GIRO, first, second, of=life.files)
    [imported] = undoable_imports.of_user(life.eva.services.everybody, life.eva.user.id)
    life.eva.undo(imported.job_id)
    database, now = life.eva.services.everybody, life.eva.services.clock.now()
    feed.forget_removed(database, before=now - timedelta(days=1))
    assert len(database.rows("SELECT id FROM removed WHERE user_id = $1", life.eva.user.id)) == 2
    feed.forget_removed(database, before=now + timedelta(seconds=1))
    assert database.rows("SELECT id FROM removed WHERE user_id = $1", life.eva.user.id) == []


def steps(life: Life, random: Random) -> Iterator[str]:
    """One thing after the other that may happen to a household."""
    services, user = life.eva.services, life.eva.user
    database = services.everybody
    known: list[TransactionRecord] = []
    served = Served(life.eva).client()

    def fresh(number: int) -> list[TransactionRecord]:
        return [
            booked(
                date(2026, 3, 1) + timedelta(days=random.randrange(60)),
                f"{random.randrange(-9000, 9000)}.{random.randrange(100):02}",
                random.choice(SHOPS),
                f"{random.random()}",
            )
            for _ in range(number)
        ]

    def bring(account: AccountRecord) -> None:
        new = fresh(random.randrange(1, 6))
        known.extend(new if account is GIRO else [])
        life.bring(account, *new, of=random.choice([life.live, life.files]))

    def reword() -> None:
        if known:
            at = random.randrange(len(known))
            known[at] = replace(known[at], purpose=f"{known[at].purpose} und noch mehr Worte")
            life.bring(GIRO, known[at], of=life.files)

    def pending() -> None:
        new = fresh(1)[0]
        life.bring(GIRO, replace(new, status="pending"))
        if random.random() < 0.7:
            life.bring(GIRO, new)

    def gap() -> None:
        day = date(2026, 5, 1) + timedelta(days=random.randrange(200))
        balance = Decimal(random.randrange(1000))
        told = StatementRecord(
            opening=balance,
            closing=balance,
            opening_date=day,
            closing_date=day + timedelta(days=3),
            is_authoritative=True,
        )
        life.bring(GIRO, statement=told, of=life.files)

    def undo() -> None:
        made = undoable_imports.of_user(database, user.id)
        if made:
            life.eva.undo(random.choice(made).job_id)

    def rule() -> None:
        said = {"field": "counterpartName", "operator": "contains", "value": random.choice(SHOPS), "category": "HEALTH"}
        assert served.post("/rules", json=said).status_code == 200

    def no_rule() -> None:
        served.delete("/rules/1")

    def correct() -> None:
        rows = database.rows("SELECT id FROM transactions WHERE user_id = $1 ORDER BY id", user.id)
        if rows:
            chosen = {"transactionId": random.choice(rows)["id"], "category": random.choice(["DINING", "HEALTH"])}
            served.post("/corrections", json=chosen)

    def rename() -> None:
        of_all = accounts.of_user(database, user.id)
        if of_all:
            life.do("accounts rename", account=random.choice(of_all).id, name=f"Name {random.random()}")

    def hide() -> None:
        of_all = accounts.every(database, user.id)
        if of_all:
            one = random.choice(of_all)
            life.do("accounts show" if one.is_hidden else "accounts hide", account=one.id, is_hidden=not one.is_hidden)

    def merge() -> None:
        card, giro = life.account(CARD), life.account(GIRO)
        if card and giro:
            now = services.clock.now()
            database.atomically(
                lambda session: merges.merge(session, user=user, source_id=card, target_id=giro, now=now)
            )

    def separate() -> None:
        merged = merges.merged_accounts(database, user.id)
        if merged:
            id_, now = merged[0].id, services.clock.now()
            database.atomically(lambda session: merges.separate(session, user=user, source_id=id_, now=now))

    def delete() -> None:
        of_all = accounts.every(database, user.id)
        if of_all:
            one, now = random.choice(of_all).id, services.clock.now()
            database.atomically(lambda session: rebuild.delete(session, user=user, account_id=one, now=now))

    def fail() -> None:
        status = random.choice([None, "REAUTH_REQUIRED", "EXPIRED"])
        database.atomically(
            lambda session: connections.record_failure(session, user.id, life.live.id, status=status)  # type: ignore[arg-type]  # one of them
        )

    actions: list[tuple[int, Callable[[], None]]] = [
        (6, lambda: bring(GIRO)),
        (3, lambda: bring(CARD)),
        (2, lambda: bring(NAMED_CARD)),
        (3, lambda: bring(SAVINGS)),
        (4, reword),
        (3, pending),
        (3, gap),
        (3, undo),
        (2, rule),
        (2, no_rule),
        (3, correct),
        (2, rename),
        (3, hide),
        (2, merge),
        (2, separate),
        (1, delete),
        (2, fail),
    ]
    while True:
        [action] = random.choices([each for _, each in actions], [weight for weight, _ in actions])
        action()
        yield getattr(action, "__name__", "?")


@pytest.mark.requirement("changes.promise")
def test_a_store_of_before_is_told_as_it_is_and_then_only_what_changes(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"))
    life.bring(SAVINGS, booked("2026-03-02", "50.00", "Eva", "Sparen"), of=life.files)
    life.bring(CARD, booked("2026-03-05", "-8.00", "Kino", "Film"), of=life.files)
    life.do("accounts hide", account=life.account(CARD), is_hidden=True)
    database = life.eva.services.everybody
    kept = database.rows("SELECT id, bank_account, account FROM account_states WHERE removed_state IS NULL ORDER BY id")
    for table in ("account_states", "removed"):
        database.execute(f"DELETE FROM {table} WHERE user_id = $1", life.eva.user.id)
    database.execute("UPDATE transactions SET added_state = 0, changed_state = 0 WHERE user_id = $1", life.eva.user.id)
    migration = next(each for each in runner.migrations() if each.number == 35)
    for statement in runner._statements(migration.sql, is_shared=database.is_shared):
        if statement.startswith("INSERT"):
            database.execute(statement)
    assert database.rows("SELECT id, bank_account, account FROM account_states ORDER BY id") == kept
    rows, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), rows.rows) == ((2, 0, 0), served.listed())
    assert (kinds(owned.pages[-1]), owned.rows) == ((2, 0, 0), served.listed_accounts())
    life.bring(GIRO, booked("2026-03-08", "-6.00", "Rewe", "Brot"))
    life.do("accounts show", account=life.account(CARD), is_hidden=False)
    for each in (rows, owned):
        each.read()
    assert (kinds(rows.pages[-1]), rows.rows) == ((2, 0, 0), served.listed())
    assert (kinds(owned.pages[-1]), owned.rows) == ((1, 1, 0), served.listed_accounts())


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("changes.cursors")
@pytest.mark.long
def test_a_restored_backup_is_another_life_and_every_cursor_of_before_is_410(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"), of=life.files)
    services = life.eva.services
    copy = backup.backup(services.store, services.settings.data_dir / "backups" / "one")
    life.bring(GIRO, booked("2026-03-03", "-6.00", "Kino", "Film"), of=life.files)
    rows, owned = Mirror(served.client()), Mirror(served.client(), "/accounts/changes")
    for each in (rows, owned):
        each.read()
    before, store = services.incarnation, services.settings.store_path
    services.close()
    assert store is not None
    lives = {before.id}
    for _ in range(2):  # the same backup twice, into the same file
        store.write_bytes((copy / backup.STORE_NAME).read_bytes())
        life.eva.services = open_services(services.settings)
        life.eva.services.clock.offset = services.clock.offset
        assert life.eva.services.incarnation.key == before.key
        assert life.eva.services.incarnation.id not in lives
        lives.add(life.eva.services.incarnation.id)
        life.bring(GIRO, booked("2026-03-04", "-7.00", "Kino", "Film"), of=life.files)
        life.bring(GIRO, booked("2026-03-05", "-8.00", "Kino", "Film"), of=life.files)
        served = Served(life.eva)
        for each in (rows, owned):
            each.client, each.restarts = served.client(), 0
            each.read()
            assert each.restarts == 1
        assert (rows.rows, owned.rows) == (served.listed(), served.listed_accounts())
        life.eva.services.close()
    life.eva.services = open_services(services.settings)
    assert life.eva.services.incarnation.id in lives, "a start alone begins no other life"


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("changes.cursors")
def test_a_new_incarnation_that_one_process_begins_is_410_once_at_all_processes(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"), of=life.files)
    mirror, here = Mirror(served.client()), served.client()
    mirror.read()
    store_facts.remember(life.eva.services.everybody, incarnation.PLACE, "another timeline")
    with closing(open_services(life.eva.services.settings)) as later:
        later.clock.offset = life.eva.services.clock.offset
        assert later.incarnation.id != life.eva.services.incarnation.id
        there = TestClient(application(later), base_url=str(here.base_url), headers=dict(here.headers))
        for mirror.client in (there, here, there, here):
            mirror.read()
        assert mirror.restarts == 1
    assert mirror.rows == served.listed()


@pytest.mark.no_cover  # many steps, see tests/conftest.py
@pytest.mark.requirement("changes.promise")
@pytest.mark.long
def test_a_copy_that_is_read_while_four_write_lacks_nothing(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-01", "-1.00", "Rewe", "Brot"), of=life.files)
    mirrors = [Mirror(served.client(), limit=limit) for limit in (1, 5, 500)]

    def write_one(name: str, number: int) -> None:
        services, batch_id = life.eva.services, f"{name}{number}"
        record = booked("2026-03-02", f"-{number + 2}.00", name, batch_id)
        read = read_batch(Batch(id=batch_id, records=iter([GIRO, record])), today=services.clock.today())

        def work(session: Transaction) -> None:
            session.hold(life.eva.user.id)
            whose, now = life.eva.user, services.clock.now()
            ingest.store(session, user=whose, connection=life.files, job_id=batch_id, batch=read, now=now)

        is_stored = False
        while not is_stored:  # PostgreSQL has those begin anew who waited, and without pause somebody waits always
            with suppress(Conflict):
                services.everybody.atomically(work)
                is_stored = True

    def write(name: str) -> None:
        for number in range(8):
            write_one(name, number)

    with ThreadPoolExecutor(4) as writers:
        writing = [writers.submit(write, name) for name in SHOPS[:4]]
        while wait(writing, timeout=0.1).not_done:  # readers without pause would take the time of those who write
            for each in mirrors:
                each.read(pages_max=3)
    assert [each.result() for each in writing] == [None] * 4
    for mirror in mirrors:
        mirror.read()
        assert mirror.rows == served.listed()
        assert len(mirror.rows) == 33


STEPS = examples(70)


@pytest.mark.no_cover  # many steps, see tests/conftest.py
@pytest.mark.requirement("changes.promise")
@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.long
def test_clients_of_all_habits_have_the_full_list_after_every_step(life: Life, served: Served, seed: int) -> None:
    random = Random(seed)
    eager, lazy, sleeper = Mirror(served.client()), Mirror(served.client(), limit=3), Mirror(served.client(), limit=7)
    owned = Mirror(served.client(), "/accounts/changes", limit=1)
    old: list[Mirror] = []
    for number, _ in zip(range(STEPS), steps(life, random), strict=False):
        full, full_accounts = served.listed(), served.listed_accounts()
        eager.read()
        assert eager.rows == full
        owned.read()
        assert owned.rows == full_accounts
        if lazy.read(pages_max=2):
            assert lazy.rows == full
        if number % 10 == 9:
            sleeper.read()
            assert sleeper.rows == full
            old += [eager.copy(), lazy.copy()]
            anew = Mirror(served.client(), limit=5)
            anew.read()
            assert anew.rows == full
            assert not any(page["removed"] for page in anew.pages)
        for each in random.sample(old, min(2, len(old))):
            again = each.copy()
            again.limit = random.randrange(1, 30)
            again.read()
            assert again.rows == full
    assert eager.restarts == lazy.restarts == sleeper.restarts == owned.restarts == 0
    client = served.client()
    assert {each["id"]: each for each in exact(client.get("/accounts").content)["accounts"]} == owned.rows
    for id_, row in eager.rows.items():
        assert exact(client.get(f"/transactions/{id_}").content) == row


@pytest.mark.requirement("changes.promise")
def test_an_export_is_a_first_run_and_tells_where_to_go_on(life: Life, served: Served) -> None:
    life.bring(GIRO, booked("2026-03-02", "-5.00", "Rewe", "Brot"), booked("2026-03-03", "-7.00", "Kino", "Film"))
    client, path = served.client(), "/transactions/export"
    whole = client.get(path, params={"format": "jsonl"})
    lines = [exact(line) for line in whole.text.splitlines()]
    listed = served.listed()
    assert [{name: line[name] for name in listed[line["id"]]} for line in lines] == [
        listed[line["id"]] for line in lines
    ]
    told = client.get("/transactions/changes", params={"cursor": whole.headers["next-cursor"]}).json()
    assert (kinds(told), told["hasMore"]) == ((0, 0, 0), False)
    life.bring(GIRO, booked("2026-03-04", "9.00", "Zwetschge", "Pflaume"))
    told = client.get("/transactions/changes", params={"cursor": whole.headers["next-cursor"]}).json()
    assert kinds(told) == (1, 0, 0)
    for filters, amounts in (
        ({"amountMin": "-5"}, ["-5.00", "9.00"]),
        ({"amountMax": "-5.00"}, ["-7.00", "-5.00"]),
        ({"amountMin": "-6.99", "amountMax": "0"}, ["-5.00"]),
        ({"type": "fee"}, []),
    ):
        some = client.get(path, params={"format": "jsonl", **filters})
        assert sorted((exact(line)["amount"] for line in some.text.splitlines()), key=Decimal) == amounts
        assert "next-cursor" not in some.headers
    assert client.get(path, params={"format": "jsonl", "amountMin": "1e3"}).status_code == 400
