"""The page about the store names every table there is, and no other."""

import pytest

from storage.database import Database
from tests.documents.conftest import ROOT, table, ticked


@pytest.mark.requirement("docs.data_model")
def test_the_tables_of_the_page_are_those_of_the_store(database: Database) -> None:
    stored = {row["name"] for row in database.rows("SELECT table_name AS name FROM information_schema.tables")}
    listed = [name for row in table(ROOT / "docs" / "data-model.md", "table") for name in ticked(row[0])]
    assert sorted(listed) == sorted(stored)
