"""What every room's tests share: how many random examples a run tries, and a store in a folder of its own.

The gate tries an eighth of the examples, drawn by the seed that `--hypothesis-seed` names (`.ci/run` takes it from the
commit); `--long` tries all of them, and runs what is marked `long` too.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

import handlers  # noqa: F401 - sets the threads of Polars as in the product, before anything imports it
from tests.citus import CITUS_URL, Citus, Watch
from tests.citus import NOW as NOW
from tests.engines import ENGINE, NONE, OpenStore, programs
from tests.sql_texts import Recorder
from tests.tracing import untraced

EXAMPLES = {"gate": 8, "long": 60, "thorough": 1500, "cluster": 6}  # of a property that says no number of its own
for kind, count in EXAMPLES.items():
    settings.register_profile(
        kind, deadline=None, database=None, max_examples=count, suppress_health_check=[HealthCheck.too_slow]
    )
RECORDER = Recorder()


class _Seeds:
    first = 0


SEEDS = _Seeds()
TESTS = Path(__file__).parent
STORAGE = TESTS / "storage"
ASKED_FROM_OUTSIDE = ("clients", "documents", "package", "page")  # folders whose servers need no tracer
REACHED_ELSEWHERE = {  # dear ones that reach hardly a line alone
    "tests/attack/http/test_attacks.py",
    "tests/bench/test_bench.py",
    "tests/cache/test_never_stale.py",
    "tests/cache/test_same_bytes.py",
    "tests/calendar/test_what_is_due.py",
    "tests/contract/test_bounds.py",
    "tests/demo/test_export_round_trips.py",
    "tests/demo/test_files_equal_sync.py",
    "tests/explanations/test_figures_explained.py",
    "tests/explanations/test_recomputed.py",
    "tests/explanations/test_while_importing.py",
    "tests/imports/test_exports.py",
    "tests/imports/test_formats_of_one_account.py",
    "tests/imports/test_rules_and_corrections.py",
    "tests/imports/test_undo.py",
    "tests/live/test_finapi.py",
    "tests/live/test_fints.py",
    "tests/mcp/test_hostile_texts.py",
    "tests/oauth/pages/test_second_press.py",
    "tests/service/test_behind_a_proxy.py",
    "tests/service/test_random_selections.py",
    "tests/statements_csv/test_csv_refusals.py",
    "tests/storage/test_border_of_selection.py",
    "tests/storage/test_complete_windows.py",
    "tests/storage/test_former_tellings.py",
    "tests/storage/test_ingest_states.py",
    "tests/storage/test_migrations.py",
    "tests/storage/test_random_histories.py",
    "tests/storage/test_repeated_syncs.py",
    "tests/words/test_words_survive.py",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--engine postgresql` runs the same tests over PostgreSQL, `--engine citus` over a cluster of machines."""
    parser.addoption("--engine", choices=("duckdb", "postgresql", "citus"), default="duckdb")
    parser.addoption("--long", action="store_true", help="also what is marked long, and all random examples")
    parser.addoption("--record-sql", type=Path, help="keep every statement in this folder (tests.sql_texts)")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the engine before the first store is made, and how much is tried."""
    ENGINE.name = config.getoption("--engine")
    _choose_examples(config)
    if config.getoption("--record-sql") is not None and ENGINE.name == "duckdb":
        RECORDER.begin()
    if ENGINE.name != "duckdb" and programs() is None:
        raise pytest.UsageError(NONE)
    if ENGINE.name == "citus":
        if CITUS_URL not in os.environ:
            raise pytest.UsageError(f"Set {CITUS_URL} to an empty database on the coordinator of a Citus cluster.")
        ENGINE.name, ENGINE.citus = "postgresql", Citus(os.environ.pop(CITUS_URL))


def _choose_examples(config: pytest.Config) -> None:
    """How many random examples are tried, and which: those of the given seed, else the same in every run."""
    usual = "cluster" if ENGINE.name == "citus" else "long" if config.getoption("--long") else "gate"
    profile, seed = config.getoption("--hypothesis-profile") or usual, config.getoption("--hypothesis-seed")
    is_fixed = seed is None and profile != "thorough"
    settings.register_profile("chosen", parent=settings.get_profile(profile), derandomize=is_fixed)
    settings.load_profile("chosen")
    SEEDS.first = int(seed or 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Each worker of pytest-xdist collects all tests. The first alone is traced meanwhile, for what the product runs
    when it is imported; and each begins with other folders, so that in a fresh clone each rewrites asserts for all.
    What is collected stays: to search it for garbage took a sixth of this."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if session.config.args == [TESTS.name]:
        folders = sorted(str(path) for path in TESTS.iterdir() if any(path.rglob("test_*.py")))
        turn = worker * len(folders) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        session.config.args = folders[turn:] + folders[:turn]
    gc.disable()
    with untraced() if worker else nullcontext():
        result = yield
    gc.freeze()
    gc.enable()
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is long (unless asked for) and what is about the other engine. Random examples run
    without the tracer of coverage, which makes them three times as slow, and so does what is marked `no_cover` for its
    length: whole histories, thousands of lines. What counts is what a short test reaches on purpose. The same holds for
    folders and files that reach nothing which shorter ones do not. Over PostgreSQL tests of the store and those about
    PostgreSQL are traced: the others reach there what they reach over DuckDB."""
    items.sort(key=lambda item: item.path)  # the same order in each worker
    engines = {ENGINE.name}
    if ENGINE.name == "postgresql":
        engines.add("citus" if ENGINE.citus is not None else "one server")
    if not config.getoption("--long"):
        _leave_out_what_is_long(config, items)
    for item in items:
        marker = item.get_closest_marker("engine")
        is_random = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
        name = item.path.relative_to(TESTS.parent).as_posix()
        is_reached = _folder(item) in ASKED_FROM_OUTSIDE or name in REACHED_ELSEWHERE
        is_other_engine = ENGINE.name == "postgresql" and marker is None and STORAGE not in item.path.parents
        if is_random or is_reached or is_other_engine:
            item.add_marker("no_cover")
        if marker is not None and marker.args[0] not in engines:
            item.add_marker(pytest.mark.skip(reason=f"about {marker.args[0]} alone"))


def _leave_out_what_is_long(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is marked `long`, and of the cases of a `sampled` test all but an eighth, which each commit draws anew. Over
    PostgreSQL all but tests about it, and a quarter of the files about the store, imports and words, drawn too."""
    cases: dict[str, list[pytest.Item]] = {}
    left_out: set[pytest.Item] = set()
    files = sorted({item.path for item in items if _folder(item) in ("storage", "imports", "words")})
    drawn = chance("files over PostgreSQL").sample(files, -(-len(files) // 4))
    for item in items:
        is_elsewhere = ENGINE.name == "postgresql" and item.path not in drawn
        is_apart = is_elsewhere and item.get_closest_marker("engine") is None
        if is_apart or item.get_closest_marker("long") is not None:
            left_out.add(item)
        elif item.get_closest_marker("sampled") is not None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, same in cases.items():
        left_out |= set(same) - set(chance(name).sample(same, -(-len(same) // 8)))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the cluster that was started, and write down the statements that were seen."""
    gc.unfreeze()  # as the server does at its end
    ENGINE.end()
    folder = config.getoption("--record-sql")
    if folder is not None and ENGINE.name == "duckdb":
        RECORDER.write(folder / f"{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.statements")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What a test without the tracer starts runs without it too."""
    is_traced = item.get_closest_marker("no_cover") is None
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if not is_traced and name.startswith("COVERAGE_")}
    try:
        return (yield)
    finally:
        os.environ.update(hidden)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Over PostgreSQL neither what such a test is given nor the end of it is traced, nor in folders without any test
    that is. Elsewhere they are: a fixture of a module may be made for the one test of it that is not traced."""
    with _traced_as(item):
        return (yield)


def _traced_as(item: pytest.Item) -> AbstractContextManager[None]:
    is_whole = ENGINE.name == "duckdb" and _folder(item) not in ASKED_FROM_OUTSIDE
    return nullcontext() if is_whole or item.get_closest_marker("no_cover") is None else untraced()


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """The stores of a test end with it, those on PostgreSQL too; on a cluster they are emptied and used again, for they
    take seconds to make."""
    with _traced_as(item):
        result = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder is not None:
        ENGINE.free(folder)
    return result


def examples(count: int) -> int:
    """So many examples of a property under `--long`: an eighth of them in the gate, 25 times as many under
    `--hypothesis-profile thorough`."""
    return max(1, count * settings().max_examples // EXAMPLES["long"])


def chance(name: str) -> Random:
    """A die for the test of this name, other in each commit."""
    return Random(f"{SEEDS.first} {name}")


def seeds(count: int) -> list[int]:
    """The seeds of so many random histories under `--long`; an eighth of them in the gate, others for each commit."""
    wanted = examples(count)
    return [(SEEDS.first + number) % count if wanted <= count else number for number in range(wanted)]


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    """A test that takes the tracer away hides from coverage what every test after it runs: that test fails."""
    before = sys.gettrace()
    yield
    assert (sys.gettrace() is None) == (before is None), "the tracer of coverage was not put back"


@pytest.fixture(autouse=True)
def names_users(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A statement that asks all machines of a cluster fails its test: on one that is down it would fail for everybody.
    The few that may are named in `tests.citus`."""
    if ENGINE.name == "duckdb":
        yield
        return
    with _watch().watching(monkeypatch) as asked_all:
        yield
    assert asked_all == []


@cache
def _watch() -> Watch:
    return Watch(is_cluster=ENGINE.citus is not None)


@pytest.fixture
def now() -> datetime:
    """Noon of the day on which the tests live."""
    return NOW


@pytest.fixture
def database(tmp_path: Path) -> Iterator[OpenStore]:
    """An empty, migrated store and all its rows: a real one, of the chosen engine."""
    with ENGINE.passing_store(tmp_path / "bankdata.duckdb") as opened:
        yield opened


def empty_store(path: Path) -> OpenStore:
    """An empty, migrated store in a new file."""
    return ENGINE.empty_store(path)


def empty_folder(path: Path) -> Path:
    """A new data folder with such a store and the keys of a start, as `open_services` would make them in half a
    second."""
    ENGINE.empty_folder(path)
    return path
