"""The data in memory: bounded, least recently used out first, loaded by one caller for all that wait."""

import threading
import tracemalloc
from array import array
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, TransactionRecord
from handlers.operations.cached_answers import CachedOperation
from handlers.settings import load
from handlers.web.request import Answer, Request
from handlers.work.cache import entries
from handlers.work.cache.cache import Cache
from handlers.work.cache.reader import Reader
from handlers.work.cache.user_data import ANSWERS_BYTES_MAX, ANSWERS_MAX, ASKED_MAX, BASE_BYTES, Need, UserData
from handlers.work.services import Services, open_services
from storage import transactions, users
from storage.database import Row, StoreUnavailable, Transaction
from storage.transactions import KEPT, Selection
from tests.cache.conftest import Operations, asking, at_once
from tests.cache.from_store import FromStoreReader
from tests.conftest import empty_folder
from tests.engines import whole
from tests.storage.conftest import make_bank

ROOM_FOR_TWO = 2 * BASE_BYTES


def user_data(state: int = 1) -> UserData:
    return UserData(state=state, home_currency="EUR", accounts=[])


def cache_of(states: dict[str, int], bytes_max: int = 10 * BASE_BYTES) -> Cache:
    return Cache(bytes_max=bytes_max, state=states.__getitem__)


def put(on: Cache, user_id: str, state: int = 1) -> UserData:
    return on.fetch(user_id, is_enough=lambda _: True, read=lambda: user_data(state))


@pytest.mark.requirement("cache.bounded")
def test_the_least_recently_used_goes_first() -> None:
    kept = cache_of({"a": 1, "b": 1, "c": 1}, bytes_max=ROOM_FOR_TWO)
    put(kept, "a")
    put(kept, "b")
    kept.touch("a")
    put(kept, "c")
    assert [kept.at_hand(name) is not None for name in "abc"] == [True, False, True]
    assert (kept.bytes, kept.evictions) == (ROOM_FOR_TWO, 1)


@pytest.mark.requirement("cache.bounded")
def test_what_is_evicted_while_it_is_read_stays_evicted() -> None:
    kept = cache_of({"a": 1})
    put(kept, "a")
    kept.clear()
    kept.touch("a")
    assert (kept.users(), kept.hits) == ([], 1)


@pytest.mark.requirement("cache.bounded")
def test_one_that_has_grown_pushes_others_out_as_far_as_half_of_the_room_is_left() -> None:
    kept = cache_of(dict.fromkeys("abc", 1), bytes_max=3 * BASE_BYTES)
    first, second, third = put(kept, "a"), put(kept, "b"), put(kept, "c")
    first.keep_answer("longest", Answer(body=bytes(4 * BASE_BYTES)))
    kept.weigh("a", first)
    assert [kept.at_hand(name) for name in "abc"] == [first, None, third]
    kept.weigh("b", second)  # long gone: it does not come back by growing
    assert kept.at_hand("b") is None


@pytest.mark.requirement("cache.bounded")
def test_of_users_who_take_more_than_half_of_the_room_the_last_one_stays() -> None:
    kept = cache_of(dict.fromkeys("abc", 1), bytes_max=4 * BASE_BYTES)
    for name in "bac":
        data = put(kept, name)
        data.keep_answer("longest", Answer(body=bytes((name != "a") * 4 * BASE_BYTES)))
        kept.weigh(name, data)
    assert (kept.users(), kept.evictions) == (["a", "c"], 1)
    assert kept.bytes > 4 * BASE_BYTES  # as the figure of the cache shows
    put(kept, "a")
    assert kept.users() == ["a", "c"]


@pytest.mark.requirement("cache.bounded")
def test_only_so_many_answers_of_one_user_are_kept() -> None:
    kept = user_data()
    for number in range(ANSWERS_MAX + 1):
        kept.keep_answer(number, Answer(body=b"{}"))
    kept.keep_answer(1, Answer(body=b"another"))
    assert kept.answer(0) is None
    assert kept.answer(1) == Answer(body=b"{}")
    assert kept.answer(ANSWERS_MAX) is not None


@pytest.mark.requirement("cache.bounded")
def test_an_answer_is_kept_in_memory_of_its_own_size() -> None:
    kept = user_data()
    written = orjson.dumps({"accounts": []})  # with some KB behind it that no count of bytes shows
    kept.keep_answer(1, Answer(body=written))
    found = kept.answer(1)
    assert found is not None
    assert found.body == written
    assert found.body is not written


@pytest.mark.requirement("cache.bounded")
def test_answers_of_one_user_take_only_so_many_bytes() -> None:
    kept = user_data()
    kept.keep_answer(1, Answer(body=bytes(ANSWERS_BYTES_MAX // 2)))
    kept.keep_answer(2, Answer(body=bytes(ANSWERS_BYTES_MAX // 2)))
    assert (kept.answer(1) is None, kept.answer(2) is None) == (True, False)


@pytest.mark.requirement("cache.bounded")
def test_what_was_asked_once_is_remembered_and_only_so_much_of_it() -> None:
    kept = user_data()
    size = kept.size
    assert [kept.note_asked("page 1"), kept.note_asked("page 1")] == [False, True]
    for number in range(ASKED_MAX):
        kept.note_asked(number)
    assert not kept.note_asked("page 1")
    assert kept.size == size  # room for all of them counts from the beginning


@pytest.mark.requirement("cache.bounded")
def test_an_answer_that_is_quickly_made_is_kept_when_it_is_asked_for_again(services: Services) -> None:
    bank = make_bank(whole(services.store), services.clock.now())
    made: list[int] = []

    def quick(_services: Services, _request: Request, _reading: UserData) -> Answer:
        made.append(1)
        return Answer(body={})

    operation = CachedOperation(
        name="x", services=services, function=quick, needs=Need.ACCOUNTS, is_light=lambda _data, _arguments: True
    )
    with services.reader.open(bank.user.id, Need.ACCOUNTS):
        pass
    for _ in range(4):
        assert at_once(operation.at_once(asking(bank.user.id, "x", ""))) == Answer(body=b"{}")
    assert len(made) == 2


@pytest.mark.requirement("cache.bounded")
@pytest.mark.parametrize("bound", ["KEPT_FILTERS_MAX", "KEPT_POSITIONS_MAX"])
def test_positions_of_only_so_many_filters_are_kept(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, bound, 2)
    rows = pl.DataFrame(
        [
            {"booking_date": date(2026, 11, 1), "id": name, "category": name, "search_text": "rewe"}
            for name in ("GROCERIES", "DINING", "RENT")
        ],
        schema=KEPT,
    )
    listed = entries.Entries(rows, {}, lambda row, _accounts: {"id": row["id"]})
    empty = listed.size
    for _ in range(3):
        for place, category in enumerate(("GROCERIES", "DINING", "RENT")):
            selection = Selection(category=category, search="rewe")
            assert listed.page(selection, limit=5, offset=0) == (1, array("I", [place]))
            assert empty < listed.size <= empty + 2 * array("I").itemsize


@pytest.mark.requirement("cache.state")
def test_data_of_another_state_are_read_anew() -> None:
    states = {"a": 1}
    kept = cache_of(states)
    first = put(kept, "a", state=1)
    states["a"] = 2
    second = put(kept, "a", state=2)
    assert second is not first
    assert kept.at_hand("a") is second
    assert put(kept, "a") is second
    assert (kept.hits, kept.misses) == (1, 2)


@pytest.mark.requirement("cache.state")
def test_data_at_hand_are_present_until_a_change_begins(services: Services) -> None:
    bank = make_bank(whole(services.store), services.clock.now())
    with services.reader.open(bank.user.id, Need.ACCOUNTS):
        pass
    data = services.reader.cache.at_hand(bank.user.id)
    assert data is not None
    assert at_once(services.reader.is_present(bank.user.id, data))
    bank.database.changes(bank.user.id)
    assert not at_once(services.reader.is_present(bank.user.id, data))


@pytest.mark.requirement("cache.state")
def test_rates_that_change_empty_the_shelf() -> None:
    kept = cache_of({"a": 1})
    put(kept, "a")
    kept.clear()
    assert (kept.at_hand("a"), kept.bytes) == (None, 0)


@pytest.mark.requirement("cache.bounded")
def test_one_caller_reads_and_the_others_wait_for_what_it_brings() -> None:
    kept, reads, begun, go_on = cache_of({"a": 1}), list[int](), threading.Event(), threading.Event()

    def read() -> UserData:
        reads.append(1)
        begun.set()
        assert go_on.wait(60)
        return user_data()

    found: list[UserData | None] = []
    callers = [
        threading.Thread(target=lambda: found.append(kept.fetch("a", is_enough=lambda _: True, read=read)))
        for _ in range(5)
    ]
    for caller in callers:
        caller.start()
    assert begun.wait(60)
    go_on.set()
    for caller in callers:
        caller.join()
    assert len(reads) == 1
    assert len({id(each) for each in found}) == 1


@pytest.mark.requirement("postgresql.silence")
def test_who_waits_for_what_another_reads_hears_with_them_that_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, begun, go_on, reads = cache_of({"a": 1}), threading.Event(), threading.Event(), list[int]()
    waiting = threading.Semaphore(0)

    def waits(reading: list[Future[bool]], seconds: float) -> object:
        waiting.release()
        return wait(reading, seconds)

    monkeypatch.setattr("handlers.work.cache.cache.wait", waits)

    def fails() -> UserData:
        reads.append(1)
        begun.set()
        assert go_on.wait(60)
        raise StoreUnavailable

    def fetch() -> None:
        with pytest.raises(StoreUnavailable):
            kept.fetch("a", is_enough=lambda _: True, read=fails)

    with ThreadPoolExecutor(3) as several:
        first = several.submit(fetch)
        assert begun.wait(60)
        others = [several.submit(fetch) for _ in range(2)]
        for _ in others:
            assert waiting.acquire(timeout=60)
        go_on.set()
        for each in (first, *others):
            each.result(60)
    assert reads == [1]
    assert put(kept, "a") is kept.at_hand("a")


@pytest.mark.requirement("postgresql.silence")
def test_a_read_that_hangs_keeps_nobody_else_waiting_and_its_own_callers_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("handlers.work.cache.cache.WAIT_SECONDS", 0.05)
    names = [f"user {number}" for number in range(200)]
    kept, begun, go_on = cache_of(dict.fromkeys(["a", *names], 1)), threading.Event(), threading.Event()

    def hangs() -> UserData:
        begun.set()
        assert go_on.wait(60)
        return user_data()

    reading = threading.Thread(target=lambda: kept.fetch("a", is_enough=lambda _: True, read=hangs))
    reading.start()
    assert begun.wait(60)
    for name in names:
        put(kept, name)
    with pytest.raises(StoreUnavailable):
        put(kept, "a")
    go_on.set()
    reading.join()
    assert put(kept, "a") is kept.at_hand("a")


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    opened = open_services(load({}, data_dir=empty_folder(tmp_path / "data")))
    yield opened
    opened.close()


PAGE: dict[str, Any] = {
    **dict.fromkeys(("account_ids", "category", "date_from", "date_to", "search")),
    "page": 1,
    "per_page": 100,
}


def with_bookings(services: Services, name: str, rows: int) -> str:
    """A user of so many bookings; his id."""
    bank = make_bank(whole(services.store), services.clock.now(), name)
    account = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR")
    day = date(2026, 11, 1)
    bank.bring(
        [
            TransactionRecord(amount=Decimal(-1 - n), currency="EUR", booking_date=day - timedelta(days=n))
            for n in range(rows)
        ],
        account=account,
    )
    return bank.user.id


@pytest.mark.requirement("cache.bounded")
def test_the_json_of_rows_takes_the_memory_that_is_counted(services: Services) -> None:
    user_id = with_bookings(services, "eva", 300)
    table = Operations(services)
    table.ask("listTransactions", user_id, **PAGE | {"page": 3})
    held = services.reader.cache.at_hand(user_id)
    assert held is not None
    counted = held.entries.size
    tracemalloc.start()
    try:
        held.entries.json(range(200))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1.5 * (held.entries.size - counted)


@pytest.mark.requirement("cache.bounded")
def test_a_long_history_is_kept_and_drives_nobody_out_of_memory(services: Services) -> None:
    short, long = with_bookings(services, "eva", 1), with_bookings(services, "max", 300)
    render = services.reader.render
    narrow = Reader(services.store, bytes_max=4 * BASE_BYTES, render=render)
    table = Operations(replace(services, reader=narrow))
    slow = Operations(replace(services, reader=FromStoreReader(services.store, render)))
    (row,) = services.everybody.rows("SELECT max(id) AS id FROM transactions WHERE user_id = $1", long)
    assert table.ask("listTransactions", short, **PAGE) == slow.ask("listTransactions", short, **PAGE)
    figures = {"account_ids": None, "months": 6}
    for name, arguments in (
        ("listTransactions", PAGE | {"page": 2}),
        ("getCashflow", figures),
        ("getTransaction", row),
    ):
        assert table.ask(name, long, **arguments) == slow.ask(name, long, **arguments)
    assert (narrow.cache.users(), narrow.cache.evictions) == ([short, long], 0)
    held = narrow.cache.at_hand(long)
    assert held is not None
    assert held.has(Need.LIST | Need.DETAILS)
    assert held.size > 4 * BASE_BYTES


@pytest.mark.requirement("cache.one_reading")
def test_within_a_transaction_a_user_is_read_as_it_has_changed_them_and_not_kept(services: Services) -> None:
    user_id = with_bookings(services, "eva", 1)
    with services.of(user_id).transaction() as session:
        users.set_home_currency(session, user_id, "USD")
        assert services.reader.read(session, user_id, Need.LIST).home_currency == "USD"
    assert services.reader.cache.at_hand(user_id) is None


@pytest.mark.requirement("cache.one_reading")
@pytest.mark.parametrize("is_dry_run", [False, True])
def test_bookings_in_memory_are_let_go_before_a_change_of_many(services: Services, is_dry_run: bool) -> None:
    user_id = with_bookings(services, "eva", 1)
    with services.reader.open(user_id, Need.LIST):
        pass
    at_hand = services.reader.cache.at_hand
    held = [at_hand(user_id), services.change(user_id, lambda _session: at_hand(user_id), is_dry_run=is_dry_run)]
    assert [data is not None for data in held] == [True, False]


@pytest.mark.requirement("cache.one_reading")
def test_of_somebody_who_is_not_in_memory_a_single_booking_is_read_and_not_kept(services: Services) -> None:
    user_id = with_bookings(services, "eva", 3)
    table = Operations(services)
    slow = Operations(replace(services, reader=FromStoreReader(services.store, services.reader.render)))
    ids = [row["id"] for row in services.everybody.rows("SELECT id FROM transactions")]
    for id_ in [*ids, "trx_unknown"]:
        for name in ("getTransaction", "explainTransaction"):
            assert table.ask(name, user_id, id=id_) == slow.ask(name, user_id, id=id_)
    assert services.reader.cache.at_hand(user_id) is None


@pytest.mark.requirement("cache.one_reading")
@pytest.mark.parametrize("more", [Need(0), Need.RULES])
def test_a_single_booking_is_read_with_rules_only_where_they_are_explained(services: Services, more: Need) -> None:
    user_id = with_bookings(services, "eva", 1)
    ((id_,),) = (row.values() for row in services.everybody.rows("SELECT id FROM transactions"))
    with services.reader.open(user_id, Need.LIST | Need.DETAILS | more, only=id_) as reading:
        found = reading.find(id_)
    assert found is not None
    assert ("type_rule" in found) is bool(more)


@pytest.mark.requirement("cache.one_reading")
@pytest.mark.parametrize("is_in_memory", [True, False])
def test_a_single_booking_and_its_account_are_of_one_state(
    services: Services, monkeypatch: pytest.MonkeyPatch, *, is_in_memory: bool
) -> None:
    user_id = with_bookings(services, "eva", 1)
    ((id_,),) = (row.values() for row in services.everybody.rows("SELECT id FROM transactions"))
    if is_in_memory:
        with services.reader.open(user_id, Need.ACCOUNTS):
            pass
    find, words = transactions.find, iter(["told anew"])

    def told_anew(session: Transaction, word: str) -> None:
        session.changes(user_id)
        session.execute("UPDATE accounts SET given_name = $2 WHERE user_id = $1", user_id, word)
        session.execute("UPDATE transactions SET purpose = $2 WHERE user_id = $1", user_id, word)

    def find_late(*given: Any, **more: Any) -> Row | None:
        for word in words:
            services.of(user_id).atomically(partial(told_anew, word=word))
        return find(*given, **more)

    monkeypatch.setattr(transactions, "find", find_late)
    with services.reader.open(user_id, Need.LIST | Need.DETAILS, only=id_) as reading:
        found = reading.find(id_)
    assert found is not None
    assert (found["purpose"] == "told anew") is (reading.accounts[0].said_name == "told anew")


@pytest.mark.requirement("cache.state")
def test_nobody_has_no_data(services: Services) -> None:
    with services.reader.open("u_nobody", Need.ACCOUNTS) as reading:
        assert list(reading.accounts) == []
    assert services.reader.cache.at_hand("u_nobody") is None


@pytest.mark.requirement("cache.never_stale")
def test_an_answer_that_was_begun_before_midnight_is_none_of_the_new_day(services: Services) -> None:
    bank = make_bank(whole(services.store), services.clock.now())

    def slow(services: Services, _request: Request, _reading: UserData) -> Answer:
        services.clock.offset += timedelta(days=1)
        return Answer(body={})

    operation = CachedOperation(
        name="x", services=services, function=slow, needs=Need.ACCOUNTS, is_light=lambda _data, _arguments: False
    )
    operation(asking(bank.user.id, "x", ""))
    assert services.reader.cache.at_hand(bank.user.id) is not None
    assert at_once(operation.at_once(asking(bank.user.id, "x", ""))) is None
