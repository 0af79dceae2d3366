"""`python -m tests.attack.files --count 100000`: mutated statements read apart; says what went wrong."""

import sys
import time
from pathlib import Path

import click

from connectors import formats
from connectors.statements import read_records
from tests.attack.files.mutants import mutant
from tests.attack.files.reading import fault
from tests.attack.files.seeds import seeds


@click.command()
@click.option("--count", default=1000, show_default=True, help="How many files.")
@click.option("--first", default=0, show_default=True, help="Number of the first; it makes the file.")
@click.option("--within", is_flag=True, help="Parse in this process: faster, and a traceback says where a defect is.")
@click.option("--samples", type=click.Path(exists=True, path_type=Path), help="A folder of statements to mutate, too.")
def main(count: int, first: int, within: bool, samples: Path | None) -> None:
    """Read mutated statements; ends with 1 when one of them did what none may."""
    read = formats.read_records if within else read_records
    known = seeds(samples)
    faults = 0
    slowest = 0.0
    with click.progressbar(range(first, first + count), label="files", show_pos=True, file=sys.stderr) as numbers:
        for number in numbers:
            name, content = mutant(number, known)
            began = time.monotonic()
            found = fault(read, content)
            slowest = max(slowest, time.monotonic() - began)
            if found:
                faults += 1
                click.echo(f"{number} ({name}, {len(content)} bytes): {found}")
    click.echo(f"{count} files, {faults} faults, the slowest took {slowest:.2f} s")
    sys.exit(1 if faults else 0)


main()
