"""Ctrl-C in the middle of what a command does."""

import signal
import subprocess
import sys

import pytest

READS_LISTS = """
from decimal import Decimal
import click
from handlers.cli.interrupts import interruptible
import polars as pl

@click.command()
def build() -> None:
    amounts = [Decimal(number) / 100 for number in range(200_000)]
    with interruptible():
        print("ready", flush=True)
        while True:
            pl.Series(amounts, dtype=pl.Decimal(20, 2))

build()
"""


@pytest.mark.requirement("cli.interrupted")
def test_ctrl_c_while_polars_reads_a_list_is_no_crash() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", READS_LISTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, told.strip()) == (1, "Aborted!")
