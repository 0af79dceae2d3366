"""`python -m tests.attack.files --count 100000`: mutated statements are read; says what went wrong.

Many are read in one process under the limits of the one that parses; with `--apart` each goes the way of the server,
through a process of its own, which takes some four times as long.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from connectors.statements import read_records
from tests.attack.files.batch import faults
from tests.attack.files.mutants import mutant
from tests.attack.files.reading import fault
from tests.attack.files.seeds import seeds

TOLD_EVERY = 5_000


@click.command()
@click.option("--count", default=1000, show_default=True, help="How many files.")
@click.option("--first", default=0, show_default=True, help="Number of the first; it makes the file.")
@click.option("--apart", is_flag=True, help="Each through a process of its own, as the server reads them.")
@click.option("--samples", type=click.Path(exists=True, path_type=Path), help="A folder of statements to mutate, too.")
def main(count: int, first: int, apart: bool, samples: Path | None) -> None:
    """Read mutated statements; ends with 1 when one of them did what none may."""
    began = time.monotonic()
    found = 0
    slowest, slowest_number, last = 0.0, first, began
    for number, said in faults_apart(first, count, samples) if apart else faults(first, count, samples):
        if said:
            found += 1
            click.echo(f"{number}: {said}")
        now = time.monotonic()
        if now - last > slowest:
            slowest, slowest_number = now - last, number
        last = now
        if (number - first + 1) % TOLD_EVERY == 0:
            click.echo(f"{number - first + 1} files, {found} faults, {now - began:.0f} s", err=True)
    click.echo(f"{count} files, {found} faults; the slowest, {slowest_number}, took {slowest:.2f} s")
    sys.exit(1 if found else 0)


def faults_apart(first: int, count: int, samples: Path | None) -> Iterator[tuple[int, str]]:
    """The numbers of the mutants in their order, each with what is wrong with it, or with nothing."""
    known = seeds(samples)
    for number in range(first, first + count):
        name, content = mutant(number, known)
        said = fault(read_records, content)
        yield number, f"{name}, {len(content)} bytes: {said}" if said else ""


main()
