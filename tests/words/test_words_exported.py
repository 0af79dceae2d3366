"""Words in exports, and back from them into a store in which nothing has been said."""

import io
from collections.abc import Sequence
from datetime import timedelta

import pytest

from analytics.records import Batch
from auth.scopes import ALL_SCOPES
from connectors.statements import read_records
from handlers.work.sync.statement_files import LEFT_UNSAID
from storage.importing import ingest
from storage.importing.batches import read_batch
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer

NOTE = "=1+1 \"Kim\"\r\n'two', three\\"
OCTETS = {"content-type": "application/octet-stream"}
FORMATS = ("csv", "jsonl", "parquet", "beancount")


def exported(holder: Holder, kind: str, include: str = "annotation,detailedCategory") -> bytes:
    answer = writer(holder).get("/transactions/export", params={"format": kind, "include": include})
    assert answer.status_code == 200, answer.text
    return answer.content


def bring(holder: Holder, content: bytes, number: int) -> None:
    """Import a file that this service has written."""
    services = holder.service.services
    records = read_records(io.BytesIO(content))
    batch = read_batch(Batch(id=f"file{number}", records=iter(records)), today=services.clock.today())
    services.everybody.atomically(
        lambda session: ingest.store(
            session,
            user=holder.user,
            connection=holder.connection,
            job_id=f"{holder.user.id}{number}",
            batch=batch,
            now=services.clock.now() + timedelta(seconds=number),
        )
    )


@pytest.mark.requirement("words.exports")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.sampled
def test_words_go_out_and_come_back_letter_for_letter(service: Service, holder: Holder, kind: str) -> None:
    twins = [booked("10", "-9.00", "Kita", purpose=f"child {number}") for number in (1, 2)]
    holder.bring(GIRO, [*twins, booked("11", "-5.00", "Bar")])
    plain = exported(holder, kind, include="")
    first, second = sorted((row for row in rows_of(holder) if row["counterpartName"] == "Kita"), key=purpose)
    for row, said in (
        (first, {"note": NOTE, "tags": ["A, b", "#x", "Tag"], "detailedCategory": "BAKERY"}),
        (second, {"note": "two", "category": "HEALTH"}),
    ):
        assert writer(holder).patch(f"/transactions/{row['id']}/annotation", json=said).is_success
    if kind != "parquet":
        assert exported(holder, kind, include="").replace(b"HEALTH", b"") != b""
        assert b"chosen" not in plain
    content, other = exported(holder, kind), service.newcomer()
    for number in (1, 2):
        bring(other, content, number)
        found = sorted((row for row in rows_of(other, include="annotation") if row["tags"] or row["note"]), key=purpose)
        assert [(row["note"], row["tags"], row["category"]) for row in found] == [
            (NOTE, ["#x", "A, b", "Tag"], "GROCERIES"),
            ("two", [], "HEALTH"),
        ]
        assert len(rows_of(other)) == 3
    kept = by_name(other, include="annotation")["Bar"]
    assert (kept["note"], kept["tags"]) == (None, [])
    spoken = service.newcomer()
    bring(spoken, plain, 1)
    for row in rows_of(spoken):
        writer(spoken).patch(f"/transactions/{row['id']}/annotation", json={"note": "mine"})
    bring(spoken, content, 2)
    assert {(row["note"], *row["tags"]) for row in rows_of(spoken, include="annotation")} == {("mine",)}


def purpose(row: dict[str, object]) -> str:
    return str(row["purpose"])


@pytest.mark.requirement("words.exports")
def test_words_in_a_file_that_somebody_has_changed_stay_within_bounds(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    row = rows_of(holder)[0]
    writer(holder).patch(f"/transactions/{row['id']}/annotation", json={"note": "two", "tags": ["t"]})
    content = exported(holder, "jsonl", include="annotation")
    for number, (new, kept) in enumerate(
        (
            (b'"note":"two","tags":7', (None, [])),
            (b'"note":"two","tags":[" ","7"]', ("two", ["7"])),
            (b'"note":"\\u001b"', (None, [])),
            (b'"note":"two","tags":[{}]', (None, [])),
        )
    ):
        other = service.newcomer()
        bring(other, content.replace(b'"note":"two","tags":["t"]', new), number)
        assert [(each["note"], each["tags"]) for each in rows_of(other, include="annotation")] == [kept]


@pytest.mark.requirement("words.exports")
def test_a_booking_that_a_file_names_twice_has_its_words_once(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    (row,) = rows_of(holder)
    writer(holder).patch(f"/transactions/{row['id']}/annotation", json={"note": "x"})
    content, other = exported(holder, "jsonl"), service.newcomer()
    bring(other, content + content.replace(b"-9.00", b"-8.00"), 1)
    assert {each["amount"]: each["note"] for each in rows_of(other, include="annotation")} == {-9: "x", -8: None}


@pytest.mark.requirement("words.exports")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.sampled
def test_words_on_bookings_are_brought_by_no_app_that_may_not_write_them(
    service: Service, holder: Holder, kind: str
) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita"), booked("11", "-8.00", "Bar")])
    own = writer(holder).post("/categories", json={"name": "Out", "category": "DINING"}).json()["id"]
    for row in rows_of(holder):
        said = {"note": "two", "tags": ["t"], "ownCategoryId": own}
        assert writer(holder).patch(f"/transactions/{row['id']}/annotation", json=said).is_success
    content, other = exported(holder, kind), service.newcomer()

    def brought(scopes: Sequence[str]) -> tuple[list[str], set[tuple[str | None, ...]]]:
        """What importing it warns of, and the notes and own categories that are there afterwards."""
        client = writer(other, scopes)
        report = client.post(f"/imports?filename=a.{kind}", content=content, headers=OCTETS).json()
        assert report["error"] is None
        rows = rows_of(other, include="annotation")
        names = [each["name"] for each in writer(other).get("/categories").json().get("own", [])]
        return report["warnings"], {(row["note"], *row["tags"]) for row in rows} | {("category", *names)}

    for scopes in (["write:imports"], ["write:imports", "write:rules"], ["write:imports", "write:annotations"]):
        assert brought(scopes) == ([LEFT_UNSAID], {(None,), ("category",)})
    assert brought(ALL_SCOPES) == ([], {("two", "t"), ("category", "Out")})
