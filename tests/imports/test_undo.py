"""Imports taken back, in any order: the store is as if they had never been made."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from analytics.records import AccountRecord
from storage import jobs
from storage.undo_and_merge import merges, rebuild, undoable_imports
from storage.undo_and_merge.rebuild import ImportNotKept, ImportRunning, ImportUnknown
from tests.conftest import seeds
from tests.imports.household import TABLES, Household
from tests.imports.statements_in_xml import GIRO, SAVINGS, camt
from tests.imports.test_change_feed import GIRO as LIVE
from tests.imports.test_change_feed import Life, booked

FILES = {
    "0 before.xml": camt(
        GIRO,
        """
        2026-01-05 | 2500.00 | Acme GmbH | Gehalt Januar | R1
        2026-01-06 | -12.99  | Netflix   | Abo          | R2
        """,
        opening="0.00",
        closing="2487.01",
    ),
    "1 january.xml": camt(
        GIRO,
        """
        2026-01-06 | -12.99  | Netflix      | Abo             | R2
        2026-01-20 | -300.00 | DE02120300000000202051 @ Eva | Sparen | R3
        2026-01-31 | -4.90   | Bank         | Entgelt         |
        2026-01-31 | -4.90   | Bank         | Entgelt         |
        """,
        pending="2026-02-01 | -20.00 | Tankstelle | Karte |",
    ),
    "2 savings.xml": camt(
        SAVINGS,
        "2026-01-21 | 300.00 | DE89370400440532013000 @ Eva | Sparen | S1",
        opening="1000.00",
        closing="1300.00",
    ),
    "3 february.xml": camt(
        GIRO,
        """
        2026-02-02 | -20.00 | Tankstelle Nord | Karte 4711 |
        2026-02-05 | 2500.00 | Acme GmbH | Gehalt Februar | R5
        """,
        opening="2000.00",
        closing="4480.00",
    ),
    "4 one fee.xml": camt(GIRO, "2026-01-31 | -4.90 | Bank | Entgelt |"),
    "5 three fees.xml": camt(
        GIRO,
        """
        2026-01-31 | -4.90 | Bank | Entgelt |
        2026-01-31 | -4.90 | Bank | Entgelt |
        2026-01-31 | -4.90 | Bank | Entgelt |
        """,
    ),
    "6 savings again.xml": camt(
        SAVINGS,
        """
        2026-01-21 | 300.00 | DE89370400440532013000 @ Eva | Sparen | S1
        2026-03-31 | 5.00   | Bank | Zinsen | S2
        """,
        opening="1000.00",
        closing="1305.00",
    ),
    "7 other words.xml": camt(GIRO, "2026-02-05 | 2500.00 | ACME GMBH | Gehalt Februar 2026 Lohn | X9"),
    "8 april.xml": camt(
        GIRO,
        "2026-04-01 | -50.00 | Stadtwerke | Strom | R8",
        opening="5000.00",
        closing="4950.00",
    ),
    "9 march.xml": camt(
        GIRO,
        "2026-03-15 | 520.00 | Finanzamt | Erstattung | R7",
        opening="4480.00",
        closing="5000.00",
    ),
}


@pytest.mark.requirement("imports.undo")
@pytest.mark.parametrize("seed", seeds(8))
def test_nine_imports_undone_in_another_order_leave_the_store_as_it_was_and_on_the_way_as_if_never_made(
    new_household: Callable[[str], Household], write: Callable[..., Path], tmp_path: Path, seed: int
) -> None:
    paths = {name: write(name, content) for name, content in FILES.items()}
    base, *nine = paths.values()
    eva = new_household("eva")
    eva.bring(base)
    before, exported = eva.state(), eva.exported(tmp_path)
    made = [(path, eva.bring(path)) for path in nine]
    assert eva.exported(tmp_path) != exported

    order = Random(seed).sample(made, len(made))
    for number, (_, job_id) in enumerate(order, start=1):
        eva.undo(job_id)
        if number in (3, 6):
            other = new_household(f"without {number}")
            other.bring(base)
            undone = {job for _, job in order[:number]}
            for path, job in made:
                if job not in undone:
                    other.bring(path)
            assert eva.state(with_times=False) == other.state(with_times=False)

    assert eva.state() == before
    assert eva.exported(tmp_path) == exported
    for table in ("contributions", "contribution_bookings", "booking_wordings"):
        assert len(eva.rows(table)) == {"contributions": 1, "contribution_bookings": 2, "booking_wordings": 2}[table]


@pytest.mark.requirement("imports.undo.refused")
def test_what_was_never_imported_still_runs_or_is_undone_already_is_refused(
    eva: Household, write: Callable[..., Path]
) -> None:
    made = eva.bring(write("base.xml", FILES["0 before.xml"]))
    with pytest.raises(ImportUnknown):
        eva.undo("syn_unknown")
    job = eva.start_job()
    with pytest.raises(ImportRunning):
        eva.undo(job.id)
    eva.services.everybody.atomically(lambda session: jobs.complete(session, job, now=eva.services.clock.now()))
    with pytest.raises(ImportNotKept):
        eva.undo(job.id)
    eva.undo(made)
    with pytest.raises(ImportUnknown):
        eva.undo(made)
    assert eva.rows("accounts") == eva.rows("transactions") == []


@pytest.mark.requirement("imports.undo.older")
@pytest.mark.long
def test_what_an_older_version_imported_stays_and_is_the_beginning_of_the_account(
    eva: Household, write: Callable[..., Path]
) -> None:
    paths = [write(name, content) for name, content in FILES.items()]
    eva.bring(paths[0])
    eva.bring(paths[1])
    eva.as_from_an_older_version()
    before = eva.state()
    assert undoable_imports.of_user(eva.services.everybody, eva.user.id) == []
    assert undoable_imports.older_imports(eva.services.everybody, eva.user.id) == 2
    made = [eva.bring(path) for path in paths[2:]]
    for job_id in reversed(made):
        eva.undo(job_id)
    assert eva.state() == before


@pytest.mark.requirement("imports.undo")
def test_bookings_with_an_account_that_is_gone_are_with_a_stranger_again(
    eva: Household, write: Callable[..., Path]
) -> None:
    eva.bring(write("giro.xml", FILES["1 january.xml"]))
    alone = eva.state(with_times=False)
    savings = eva.bring(write("savings.xml", FILES["2 savings.xml"]))
    later = eva.bring(write("again.xml", FILES["1 january.xml"].replace("2026-01-20", "2026-01-22")))
    assert {row["transfer_account_id"] for row in eva.rows("transactions")} != {None}
    eva.undo(savings)
    eva.undo(later)
    assert eva.state(with_times=False) == alone


@pytest.mark.requirement("imports.undo.older")
@pytest.mark.parametrize("table", TABLES)
def test_what_was_there_before_is_kept_with_every_column(eva: Household, table: str) -> None:
    columns = (
        "column_name, data_type FROM information_schema.columns WHERE table_name = $1"
        " AND column_name NOT IN ('added_state', 'changed_state') ORDER BY ordinal_position"  # rows get these anew
    )
    kept, now = (eva.services.everybody.rows(f"SELECT {columns}", name) for name in (f"earlier_{table}", table))
    assert kept == now


@pytest.mark.requirement("imports.undo")
@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_another_account_shows_for_a_hidden_one_is_in_one_place_after_an_undo_and_gone_with_its_account(
    eva: Household, is_deleted: bool
) -> None:
    life, other = Life(eva), AccountRecord(stable_key="other", currency="EUR", name="Zweites")
    usual = [booked(f"2026-{month:02}-09", f"-{month}.00", "Kino", "Kauf") for month in range(5, 11)]
    life.bring(LIVE, *usual)
    life.bring(other, *usual)  # hides the first one until it is said whether they are the same
    gym = booked("2026-11-17", "-29.90", "Fitnesswelt", "Beitrag")
    life.bring(LIVE, gym, of=life.files)
    life.bring(LIVE, gym)
    if is_deleted:
        everybody, now = eva.services.everybody, eva.services.clock.now()
        first = str(life.account(LIVE))
        everybody.atomically(lambda session: rebuild.delete(session, user=eva.user, account_id=first, now=now))
    else:
        eva.undo(undoable_imports.of_user(eva.services.everybody, eva.user.id)[2].job_id)
    rows = eva.services.everybody.rows("SELECT account_id FROM transactions WHERE counterpart_name = 'Fitnesswelt'")
    assert [row["account_id"] for row in rows] == ([] if is_deleted else [life.account(other)])


@pytest.mark.requirement("imports.undo")
def test_what_another_account_shows_for_a_hidden_one_goes_along_when_that_is_merged_into_a_third(
    eva: Household,
) -> None:
    life = Life(eva)
    other, third = (AccountRecord(stable_key=name, currency="EUR", name=name) for name in ("Zweites", "Drittes"))
    usual = [booked(f"2026-{month:02}-09", f"-{month}.00", "Kino", "Kauf") for month in range(5, 11)]
    gym = booked("2026-11-17", "-29.90", "Fitnesswelt", "Beitrag")
    life.bring(LIVE, *usual)
    life.bring(other, *usual)
    life.bring(LIVE, gym, of=life.files)  # hides it until it is said whether they are the same
    life.bring(third, booked("2026-11-02", "-7.00", "Rewe", "Brot"))
    first, second, into = (str(life.account(each)) for each in (LIVE, other, third))
    everybody, user, now = eva.services.everybody, eva.user, eva.services.clock.now()

    def held() -> list[str]:
        rows = everybody.rows("SELECT account_id FROM transactions WHERE counterpart_name = 'Fitnesswelt'")
        return [row["account_id"] for row in rows]

    assert held() == [second]
    everybody.atomically(lambda session: merges.merge(session, user=user, source_id=first, target_id=into, now=now))
    assert held() == [into]
    everybody.atomically(lambda session: merges.separate(session, user=user, source_id=first, now=now))
    assert held() in ([first], [second])
