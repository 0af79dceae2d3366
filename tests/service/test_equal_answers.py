"""The demo bank on both engines: every answer is the same, but for the moments and random ids of its making."""

import re
from pathlib import Path

import pytest

from tests.engines import ENGINE
from tests.service.conftest import account_ids, running

pytestmark = pytest.mark.engine("postgresql")

OF_THE_MAKING = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[^\"]*|syn_[0-9a-f]+|u[0-9a-f]{20}")
FIGURES = ("/accounts", "/cashflow?months=12", "/snapshot", "/subscriptions", "/subscriptions/details", "/connections")


def answers(folder: Path) -> dict[tuple[str, str], tuple[int, str]]:
    found = {}
    with running(folder, is_measured=False) as served:
        for user in ("demo", "solo", "empty", "globe"):
            client = served.client(user)
            listed = f"/transactions?accountIds={','.join(account_ids(client))}&perPage=100"
            pages = [f"{listed}&page={page}" for page in (1, 2)] + [
                f"{listed}&search={word}" for word in ("miete", "ü")
            ]
            rows = client.get(pages[0]).json().get("transactions", [])[:5]
            single = [f"/transactions/{row['id']}{further}" for row in rows for further in ("", "/explanation")]
            for path in (*FIGURES, *pages, *single):
                answer = client.get(path)
                found[user, path] = answer.status_code, OF_THE_MAKING.sub("", answer.text)
    return found


@pytest.mark.requirement("engines.equal")
def test_both_engines_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_postgresql = answers(tmp_path / "postgresql")
    monkeypatch.setattr(ENGINE, "name", "duckdb")
    assert answers(tmp_path / "duckdb") == on_postgresql
    assert len(on_postgresql) > 60
