"""Ctrl-C in the middle of what a command does."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handlers.cli import interrupts
from handlers.cli.interrupts import first_interrupt, interruptible

READS_LISTS = """
import signal
from decimal import Decimal
import click
from handlers.cli.interrupts import interruptible
import polars as pl

class Interrupting(Decimal):
    def as_tuple(self):
        signal.raise_signal(signal.SIGINT)
        return super().as_tuple()

@click.command()
def build() -> None:
    with interruptible():
        pl.Series([Decimal(1), Interrupting(2), Decimal(3)], dtype=pl.Decimal(20, 2))
        print("Polars was not interrupted, and neither was its caller")

build()
"""


@pytest.mark.requirement("cli.interrupted")
def test_ctrl_c_while_polars_reads_a_list_is_no_crash() -> None:
    done = subprocess.run([sys.executable, "-c", READS_LISTS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", "Aborted!")


TWICE = """
import os, time, click
from handlers.cli.interrupts import first_interrupt, interruptible

@click.command()
def wait() -> None:
    with interruptible(), first_interrupt(lambda: os.write(1, b"asked\\n")):
        os.write(1, b"ready\\n")  # a signal may come while print() has not returned
        time.sleep(60)

wait()
"""


@pytest.mark.requirement("cli.interrupted")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_request_to_end_asks_and_the_second_one_leaves(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", TWICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for expected in ("ready\n", "asked\n"):
            assert process.stdout.readline() == expected
            process.send_signal(number)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, told.strip()) == (1, "Aborted!")


CLEARS_UP = """
import signal, time
from tempfile import TemporaryDirectory
from handlers.cli import main

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup

@main.command()
def rehearse() -> None:
    with TemporaryDirectory() as copy:
        print(copy, flush=True)
        time.sleep(60)

main(["rehearse"])
"""


@pytest.mark.requirement("cli.interrupted")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGTERM)]
)
def test_a_command_that_is_asked_to_end_leaves_no_copy_behind(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CLEARS_UP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        copy = Path(process.stdout.readline().strip())
        assert copy.is_dir()
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, told.strip()) == (code, "Aborted!")
    assert not copy.exists()


@pytest.mark.requirement("cli.interrupted")
def test_nohup_keeps_a_command_at_work() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.requirement("cli.interrupted")
@pytest.mark.parametrize(("number", "told"), [(signal.SIGINT, []), (signal.SIGTERM, [15]), (signal.SIGHUP, [15])])
def test_an_order_to_end_interrupts_a_command_at_once(
    number: signal.Signals, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "_told", noted := list[int]())
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(number)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert noted == told


@pytest.mark.requirement("cli.interrupted")
def test_in_another_thread_nobody_is_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT)

    def enter() -> None:
        with first_interrupt(lambda: None), interruptible():
            pass

    with ThreadPoolExecutor() as threads:
        threads.submit(enter).result()
    assert signal.getsignal(signal.SIGINT) is before
