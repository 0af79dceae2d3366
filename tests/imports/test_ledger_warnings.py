"""What an import says of a ledger that its statements contradict, and what `bankdata check --accounts` says of it."""

import json
from pathlib import Path

import pytest

from handlers.commands.control_socket import CommandError
from handlers.commands.upkeep import check
from tests.imports.household import Household

IBAN = "DE23100000001234567890"  # of the bank code and number in the statements

pytestmark = pytest.mark.requirement("integrity")


def statement(folder: Path, month: int, opening: str, amount: str, closing: str) -> Path:
    """A month's MT940 with one booking."""
    path = folder / f"{month}.sta"
    path.write_text(
        f":20:S\n:25:10000000/1234567890\n:28C:{month}/1\n:60F:C26{month:02}01EUR{opening}\n"
        f":61:26{month:02}05{month:02}05D{amount}NMSC\n:86:105?20Strom {month}\n:62F:C26{month:02}28EUR{closing}\n-\n"
    )
    return path


def checked(eva: Household) -> list[str]:
    eva.lines.clear()
    try:
        check(eva.services, eva, has_accounts=True)
    except CommandError as error:
        eva.lines.append(str(error))
    return [line for line in eva.lines if line.startswith(("accounts", "WRONG      eva")) or "problem" in line]


def test_a_missing_statement_is_said_by_import_and_check_until_it_is_there(eva: Household, tmp_path: Path) -> None:
    said = (
        f"{IBAN}: Transactions from 29 January 2026 to 28 February 2026 are missing, -20.00 EUR in all. Import a"
        " statement of these days."
    )
    eva.bring(statement(tmp_path, 1, "100,00", "10,00", "90,00"))
    assert checked(eva) == ["accounts   1, their bookings compared with statements and balances"]
    eva.bring(statement(tmp_path, 3, "70,00", "5,00", "65,00"))
    assert f"  {said}" in eva.lines
    assert checked(eva) == [
        "accounts   1, their bookings compared with statements and balances",
        f"WRONG      eva: {said}",
        "1 problem found.",
    ]
    eva.bring(statement(tmp_path, 2, "90,00", "20,00", "70,00"))
    assert f"  {said}" not in eva.lines
    assert checked(eva) == ["accounts   1, their bookings compared with statements and balances"]


def test_a_statement_that_contradicts_itself_is_said_to_the_cent(eva: Household, tmp_path: Path) -> None:
    eva.bring(statement(tmp_path, 1, "100,00", "10,00", "89,99"))
    said = f"  {IBAN}: The statement from 1 January 2026 to 28 January 2026 differs from its transactions by"
    assert f"{said} -0.01 EUR." in eva.lines


def test_the_json_of_an_import_has_every_sentence_of_its_text(eva: Household, tmp_path: Path) -> None:
    eva.bring(statement(tmp_path, 1, "100,00", "10,00", "89,99"), is_json=True)
    (said,) = json.loads(eva.lines[-1])["warnings"]
    assert said == (
        f"{IBAN}: The statement from 1 January 2026 to 28 January 2026 differs from its transactions by -0.01 EUR."
    )
