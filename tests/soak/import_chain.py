"""Imports a chain of daily statements in order, reversed and shuffled, every file twice, and kills imports with -9.

    python tests/soak/import_chain.py [--days 155] [--kills 25] [--seed 1]

Prints a line per run; ends with 1 as soon as one ledger differs from that of the import in order.
"""

import argparse
import os
import random
import sys
import time
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

from tests.imports.command_line import BANKDATA, ROOT, Shell
from tests.imports.statement_chain import chain

STORED = "id, amount, booking_date, is_adjusting_entry, is_potential_duplicate"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=155)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    bank, chance = chain(arguments.days, arguments.seed), random.Random(arguments.seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / file.name for file in bank.files]
        for file, path in zip(bank.files, files, strict=True):
            path.write_bytes(file.content)
        print(f"{len(files)} files, {len(bank.entries)} bookings")
        shuffled = chance.sample(files, len(files))
        expected = imported(folder / "in order", files)
        for how, order in (("reversed", files[::-1]), ("shuffled", shuffled)):
            same(how, imported(folder / how, [*order, *order]), expected)
        same(f"{arguments.kills} kills", killed(folder / "killed", files, arguments.kills, chance), expected)


def user_of(folder: Path) -> Shell:
    shell = Shell(folder)
    shell("users", "add", "eva", "--random")
    return shell


def ledger(shell: Shell) -> tuple[object, ...]:
    return shell.rows(STORED), shell.rows("balance, balance_date", "accounts")


def imported(folder: Path, files: list[Path]) -> tuple[object, ...]:
    shell = user_of(folder)
    shell.import_(*files)
    return ledger(shell)


def killed(folder: Path, files: list[Path], kills: int, chance: random.Random) -> tuple[object, ...]:
    """The ledger after imports that were killed at any moment, and one that was not."""
    shell = user_of(folder)
    environment = {**os.environ, "BANKDATA_DATA_DIR": str(folder)}
    for _ in range(kills):
        with Popen(
            [*BANKDATA, "import", "--user", "eva", *map(str, files)],
            env=environment,
            cwd=ROOT,
            stdout=DEVNULL,
            stderr=DEVNULL,
        ) as running:
            time.sleep(chance.uniform(1, 6))
            running.kill()
    shell.import_(*files)
    return ledger(shell)


def same(how: str, found: tuple[object, ...], expected: tuple[object, ...]) -> None:
    print(f"{how}: {'the same ledger' if found == expected else 'ANOTHER LEDGER'}", flush=True)
    if found != expected:
        sys.exit(1)


if __name__ == "__main__":
    main()
