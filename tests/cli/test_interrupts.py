"""Ctrl-C in the middle of what a command does."""

import signal
import subprocess
import sys

import pytest

READING_LISTS = """
import click
from handlers.cli.interrupts import interruptible
import polars as pl

@click.command()
def build() -> None:
    texts = [str(number) for number in range(200_000)]
    with interruptible():
        print("ready", flush=True)
        while True:
            pl.DataFrame({"text": texts})

build()
"""


@pytest.mark.requirement("cli.interrupted")
def test_ctrl_c_while_polars_reads_a_list_is_no_crash() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READING_LISTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert (process.returncode, told.strip()) == (1, "Aborted!")
