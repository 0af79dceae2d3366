"""A store is asked for somebody who is named, or not at all."""

from contextlib import closing
from pathlib import Path

import pytest

from storage.database import Session
from storage.engines.opening import open_database
from tests.conftest import empty_store
from tests.engines import ENGINE


@pytest.mark.requirement("postgresql.second-wall")
def test_a_store_reads_and_writes_nothing_before_it_is_said_for_whom(tmp_path: Path) -> None:
    empty_store(tmp_path / "bankdata.duckdb").close()
    with closing(open_database(ENGINE.url(tmp_path / "bankdata.duckdb"))) as store:
        asked = {name for name in vars(Session) if not name.startswith("_")} - {"is_shared"}
        assert asked == {"rows", "execute", "frame", "append", "changes"}
        for name in (*asked, "transaction", "atomically", "hold", "stage"):
            with pytest.raises(AttributeError):
                getattr(store, name)
        for database in (store.of("somebody"), store.for_everybody()):
            assert database.rows("SELECT 1 AS one") == [{"one": 1}]
