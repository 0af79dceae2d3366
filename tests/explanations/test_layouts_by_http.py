"""Choosing how a CSV file is read, over the real application: for one file, and kept for those like it."""

import io
import json
import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, Batch, TransactionRecord
from auth.scopes import ALL_SCOPES
from connectors.bank_csv.layouts import NO_TABLE, UNSIGNED
from connectors.connector import Connection
from handlers.work import own_profiles
from handlers.work.own_profiles import KEPT_MAX, TOO_MANY_KEPT
from handlers.work.sources import connectors
from storage import kept_layouts
from tests.explanations.conftest import Holder, Service
from tests.explanations.test_files_by_http import MT940, send, sent, writer

FEBRUARY = "Datum;Wer;Betrag\n02.02.2026;Rewe;3,50\n03.02.2026;Kino;12,00\n"
MARCH = "Datum;Wer;Betrag\n02.03.2026;Rewe;4,10\n"
APRIL = "Datum;Wer;Betrag\n02.04.2026;Rewe;5,20\n"
SPENT = json.dumps(
    {
        "header": ["Datum", "Wer", "Betrag"],
        "columns": {"date": "Datum", "name": "Wer", "amount": "Betrag"},
        "date": "DD.MM.YYYY",
        "inverted": True,
    }
)


def amounts(holder: Holder) -> Sequence[float]:
    ids = ",".join(holder.account_ids())
    return sorted(row["amount"] for row in holder.get("/transactions", accountIds=ids)["transactions"])


def kept(client: TestClient) -> list[dict[str, Any]]:
    return list(client.get("/layouts").json()["layouts"])


@pytest.mark.requirement("layouts.chosen")
@pytest.mark.long
def test_a_refused_file_comes_with_what_was_guessed_to_be_changed_and_sent_back(holder: Holder) -> None:
    client = writer(holder)
    refused = sent(client, FEBRUARY, dryRun="true")
    assert refused["error"] == UNSIGNED
    [layout] = refused["layouts"]
    assert (layout["origin"], layout["sign"]) == ("guessed", "unknown")
    assert [(each["name"], each["field"], each["example"]) for each in layout["columns"]] == [
        ("Datum", "date", "02.02.2026"),
        ("Wer", None, "Rewe"),
        ("Betrag", "amount", "3,50"),
    ]
    changed = json.dumps({**json.loads(layout["profile"]), "inverted": True, "currency": "CHF"})
    tried = sent(client, FEBRUARY, dryRun="true", layout=changed)
    assert (tried["error"], tried["new"], tried["warnings"]) == (None, 2, [])
    [layout] = tried["layouts"]
    assert (layout["origin"], layout["sign"], layout["currencySource"]) == ("chosen", "turned", "layout")
    assert [(row["amount"], row["currency"]) for row in tried["statements"][0]["firstRows"]] == [
        (-3.5, "CHF"),
        (-12, "CHF"),
    ]
    assert sent(client, FEBRUARY, dryRun="true", layout=layout["profile"])["new"] == 2


@pytest.mark.requirement("layouts.kept")
def test_a_kept_layout_reads_the_next_file_with_the_same_columns_until_it_is_removed(holder: Holder) -> None:
    client = writer(holder)
    assert sent(client, FEBRUARY, name="february.csv", layout=SPENT, keepLayout="true")["new"] == 2
    [layout] = kept(client)
    assert (layout["fileName"], layout["profile"]) == ("february.csv", SPENT)
    assert [layout["accountId"]] == holder.account_ids()
    march = sent(client, MARCH)
    assert (march["error"], march["new"], [each["origin"] for each in march["layouts"]]) == (None, 1, ["chosen"])
    assert amounts(holder) == [-12, -4.1, -3.5]
    assert client.delete(f"/layouts/{layout['id']}").json() == {"layouts": []}
    assert client.delete(f"/layouts/{layout['id']}").status_code == 404
    assert sent(client, MARCH, dryRun="true")["error"] == UNSIGNED
    assert len(amounts(holder)) == 3


@pytest.mark.requirement("layouts.kept")
def test_an_app_that_may_not_see_hidden_accounts_sees_and_removes_no_layouts_of_theirs(holder: Holder) -> None:
    page, app = writer(holder), holder.service.client(holder.user.id, frozenset(ALL_SCOPES) - {"write:accounts"})
    sent(page, FEBRUARY, layout=SPENT, keepLayout="true")
    [layout] = kept(page)
    assert kept(app) == [layout]
    assert page.patch(f"/accounts/{layout['accountId']}", json={"isHidden": True}).is_success
    assert (kept(page), kept(app)) == ([layout], [])
    assert app.delete(f"/layouts/{layout['id']}").status_code == 404


@pytest.mark.requirement("layouts.kept")
@pytest.mark.long
def test_a_preview_and_a_refused_file_keep_nothing_and_another_choice_takes_the_place(holder: Holder) -> None:
    client = writer(holder)
    assert sent(client, FEBRUARY, layout=SPENT, keepLayout="true", dryRun="true")["new"] == 2
    assert sent(client, MT940, layout=SPENT, keepLayout="true")["error"] == NO_TABLE
    assert sent(client, FEBRUARY, layout=SPENT)["new"] == 2
    assert kept(client) == []
    other = json.dumps({**json.loads(SPENT), "currency": "CHF"})
    for profile in (SPENT, other):
        sent(client, MARCH, layout=profile, keepLayout="true")
    assert [each["profile"] for each in kept(client)] == [other]


@pytest.mark.requirement("layouts.kept")
@pytest.mark.long
def test_another_account_than_the_kept_one_can_be_named_and_one_that_is_gone_is_asked_about(holder: Holder) -> None:
    client = writer(holder)
    sent(client, FEBRUARY, layout=SPENT, keepLayout="true")
    [first] = holder.account_ids()
    [second] = sent(client, MARCH, accountId="new")["accountIds"]
    assert second != first
    assert sent(client, APRIL, dryRun="true")["accountIds"] == [first]
    name = client.get("/accounts").json()["accounts"][0]["accountName"]
    client.delete(f"/accounts/{first}", params={"name": name or "CSV"})
    assert holder.account_ids() == [second]
    assert [each["accountId"] for each in sent(client, APRIL)["candidates"]] == [second]


@pytest.mark.requirement("layouts.kept")
@pytest.mark.long
def test_what_one_user_keeps_reads_no_file_of_another(holder: Holder, service: Service) -> None:
    other = service.newcomer()
    sent(writer(holder), FEBRUARY, layout=SPENT, keepLayout="true")
    [layout] = kept(writer(holder))
    assert kept(writer(other)) == []
    assert writer(other).delete(f"/layouts/{layout['id']}").status_code == 404
    assert sent(writer(other), MARCH)["error"] == UNSIGNED


@pytest.mark.requirement("layouts.kept")
def test_a_folder_is_read_by_what_its_user_keeps(holder: Holder, tmp_path: Path) -> None:
    sent(writer(holder), FEBRUARY, layout=SPENT, keepLayout="true")
    (tmp_path / "march.csv").write_text(MARCH)
    os.utime(tmp_path / "march.csv", (1_700_000_000, 1_700_000_000))
    folder = connectors(holder.service.services.own_profiles.of_user)["folder"]
    settings = {"folder": str(tmp_path)}
    source = Connection(id="c", user_id=holder.user.id, bank_name="Files", settings=settings)
    for batch in folder.fetch(source, {"files": ["march.csv"]}, cursor=None, today=date(2026, 11, 20)):
        assert isinstance(batch, Batch)
        account, booking, _ = batch.records
        assert isinstance(account, AccountRecord)
        assert isinstance(booking, TransactionRecord)
        assert ([account.kept_for], str(booking.amount), batch.warnings) == (holder.account_ids(), "-4.10", [])


@pytest.mark.requirement("layouts.kept")
def test_so_many_layouts_are_kept_at_most(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT_MAX == 100
    monkeypatch.setattr(own_profiles, "KEPT_MAX", 1)
    client = writer(holder)
    for _ in range(2):
        assert sent(client, FEBRUARY, layout=SPENT, keepLayout="true")["error"] is None
    fewer = json.dumps({**json.loads(SPENT), "header": ["Datum", "Betrag"]})
    assert sent(client, FEBRUARY, layout=fewer, keepLayout="true")["error"] == TOO_MANY_KEPT
    assert [each.profile for each in kept_layouts.of_user(holder.service.services.everybody, holder.user.id)] == [SPENT]


@pytest.mark.requirement("layouts.chosen")
def test_a_wrong_layout_is_said_before_the_file_is_read(holder: Holder) -> None:
    client = writer(holder)
    assert send(client, MARCH, layout="{}").json() == {
        "error": "layout: either header (names that the header row holds) or shape (of a row) is needed"
    }
    assert send(client, MARCH, layout="{" + " " * 4000).json() == {"error": "layout: must have at most 4000 characters"}
    assert send(client, MARCH, keepLayout="true").json() == {
        "error": "keepLayout: says that a layout is kept, which is sent beside it"
    }


@pytest.mark.requirement("layouts.kept")
def test_reading_scopes_see_and_remove_no_layouts(holder: Holder) -> None:
    for answer in (holder.client.get("/layouts"), holder.client.delete("/layouts/lay_1")):
        assert answer.json() == {"error": "Insufficient scope. Required: write:imports"}


@pytest.mark.requirement("layouts.chosen")
def test_each_layout_of_a_container_is_chosen_by_itself_and_kept(holder: Holder) -> None:
    client, content = writer(holder), io.BytesIO()
    with ZipFile(content, "w") as container:
        container.writestr("february.csv", FEBRUARY)
        container.writestr("other.csv", "Tag;Name;Summe\n05.02.2026;Eva;8,50\n")
        container.writestr("known.sta", MT940)
    refused = sent(client, content.getvalue(), dryRun="true")
    assert refused["error"] == UNSIGNED
    chosen = [
        {**json.loads(each["profile"]), "inverted": True, "currency": currency}
        for each, currency in zip(refused["layouts"], ("CHF", "SEK"), strict=True)
    ]
    assert sent(client, content.getvalue(), dryRun="true", layout=json.dumps(chosen[:1]))["error"] == UNSIGNED
    done = sent(client, content.getvalue(), layout=json.dumps(chosen), keepLayout="true")
    assert (done["error"], done["new"]) == (None, 5)
    assert {each["origin"] for each in done["layouts"]} == {"chosen"}
    assert [value for value in amounts(holder) if value in (-3.5, -12, -8.5)] == [-12, -8.5, -3.5]
    assert len(kept(client)) == 2
    assert sent(client, MARCH, dryRun="true")["layouts"][0]["currency"] == "CHF"
    assert send(client, FEBRUARY, layout="[]").json()["error"].removeprefix("layout: ") == "an empty list"
    assert sent(client, FEBRUARY, layout=json.dumps(chosen[1:]))["error"].endswith("the chosen layout is for.")


@pytest.mark.requirement("layouts.chosen")
def test_a_file_of_a_container_with_the_columns_of_a_chosen_layout_is_never_guessed_after_all(holder: Holder) -> None:
    client, content = writer(holder), io.BytesIO()
    with ZipFile(content, "w") as container:
        container.writestr("march.csv", "Datum;Wer;Betrag\n02.03.2026;Rewe;-4,10\n")
    right = json.loads(SPENT)
    other_days = {**right, "date": "YYYY-MM-DD"}
    no_such_column = {**right, "columns": {**right["columns"], "purpose": "Text"}}
    for layout, reason in (
        (other_days, "Line 2: the booking date cannot be read."),
        (no_such_column, "The chosen layout takes purpose from a column that the file does not have."),
    ):
        refused = sent(client, content.getvalue(), layout=json.dumps(layout))
        assert (refused["error"], refused["new"]) == (f"File 1 of the ZIP container: {reason}", 0)
    assert sent(client, content.getvalue(), layout=SPENT)["error"] is None
    assert amounts(holder) == [4.1]
