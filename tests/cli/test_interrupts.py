"""Ctrl-C in the middle of what a command does."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from handlers.cli.interrupts import first_interrupt, interruptible

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


TWICE = """
import time, click
from handlers.cli.interrupts import first_interrupt, interruptible

@click.command()
def wait() -> None:
    with interruptible(), first_interrupt(lambda: print("asked", flush=True)):
        print("ready", flush=True)
        time.sleep(60)

wait()
"""


@pytest.mark.requirement("cli.interrupted")
def test_the_first_ctrl_c_asks_and_the_second_one_leaves() -> None:
    process = subprocess.Popen([sys.executable, "-c", TWICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for expected in ("ready\n", "asked\n"):
            assert process.stdout.readline() == expected
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, told.strip()) == (1, "Aborted!")


@pytest.mark.requirement("cli.interrupted")
def test_in_another_thread_nobody_is_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT)

    def enter() -> None:
        with first_interrupt(lambda: None), interruptible():
            pass

    with ThreadPoolExecutor() as threads:
        threads.submit(enter).result()
    assert signal.getsignal(signal.SIGINT) is before
