"""What an import told is kept word by word, however many bookings are written in one go."""

import pytest

from analytics.records import StatementRecord
from storage.importing import contributions, spool
from tests.storage.conftest import GIRO, Bank, bookings

TOLD = bookings("""
    2026-11-02 | -2.80 | Cafe | Kaffee
    2026-11-02 | -5.00 | Kiosk | Zeitung
    2026-11-02 | -2.80 | Cafe | Kaffee
    2026-11-03 | -7.00 | Kiosk | Buch
    2026-11-02 | -2.80 | Cafe | Kaffee
""")


@pytest.mark.requirement("imports.undo.words")
@pytest.mark.parametrize("at_once", [1, 2, 5, 6])
def test_a_telling_is_read_as_it_was_told_whatever_the_pieces(
    bank: Bank, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "CHUNK_ROWS", at_once)
    monkeypatch.setattr(contributions, "CHUNK_ROWS", at_once)
    bank.bring(TOLD)
    [contribution] = contributions.of_job(
        bank.database, bank.user.id, bank.database.rows("SELECT job_id FROM contributions")[0]["job_id"]
    )
    account, *told, statement = contributions.records(bank.database, bank.user.id, contribution)
    assert (account, told, statement) == (GIRO, TOLD, StatementRecord())
    assert bank.database.rows("SELECT number FROM booking_wordings ORDER BY number") == [
        {"number": 1},
        {"number": 2},
        {"number": 3},
    ]
