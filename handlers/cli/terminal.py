"""What a person at a terminal sees: results on standard output, notes and a progress bar on standard error."""

import os
import select
import shutil
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

import click

BAR_CHARACTERS = 20
REST_AFTER = 3.0  # seconds; before that an estimate of the rest jumps about


class Terminal:
    """A report for a person."""

    def __init__(self, *, keeps_notes: bool = False) -> None:
        """`keeps_notes` until `release`, where they would say too early that something is done."""
        self._bar_shown = False
        self._began = 0.0
        self._kept: list[str] | None = [] if keeps_notes else None
        self._typed = b""
        self._has_ended = False

    def line(self, text: str) -> None:
        """A line of the result."""
        self.end()
        click.echo(text)

    def note(self, text: str) -> None:
        """A line for the person."""
        if self._kept is not None:
            self._kept.append(text)
            return
        self.end()
        click.echo(text, err=True)

    def release(self) -> None:
        """What the notes say is true now."""
        kept, self._kept = self._kept or (), None
        for text in kept:
            self.note(text)

    def progress(self, label: str, done: int, total: int) -> None:
        """Redraw the bar; without a terminal nothing is drawn."""
        if not sys.stderr.isatty():
            return
        now = time.monotonic()
        if not self._bar_shown:
            self._began = now
        text = progress_text(label, done, max(1, total), seconds=now - self._began)
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps could not be drawn again
        click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
        self._bar_shown = True

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask which of these is meant; None without a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        self.note(question)
        for number, choice in enumerate(choices, start=1):
            self.note(f"  {number}  {choice}")
        return int(click.prompt("Which one", type=click.IntRange(1, len(choices)), err=True)) - 1

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:
        """A line of the person, or of standard input where that is no terminal; None at its end, and where nothing
        comes within so many seconds."""
        self.end()
        if seconds is None and is_secret and sys.stdin.isatty():
            return str(click.prompt(question, hide_input=True, err=True))
        if question and sys.stdin.isatty():
            click.echo(f"{question}: ", nl=False, err=True)
        return self._line(None if seconds is None else time.monotonic() + seconds)

    def _line(self, until: float | None) -> str | None:
        """The next line as it comes, without a buffer in which the one after it would be overlooked."""
        while b"\n" not in self._typed:
            left = None if until is None else max(0.0, until - time.monotonic())
            if self._has_ended:
                time.sleep(left or 0.0)
                return None
            if not select.select([0], [], [], left)[0]:
                return None
            piece = os.read(0, 65_536)
            self._has_ended = not piece
            self._typed += piece or (b"\n" if self._typed else b"")
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._bar_shown:
            click.echo(err=True)
            self._bar_shown = False


def progress_text(label: str, done: int, total: int, *, seconds: float) -> str:
    """The bar, the percentage, what is going on, and how long it will still take if it goes on as until now."""
    filled = BAR_CHARACTERS * done // total
    text = f"[{'#' * filled}{'.' * (BAR_CHARACTERS - filled)}] {100 * done // total:3} % {label}"
    if 0 < done < total and seconds >= REST_AFTER:
        minutes, rest = divmod(round(seconds * (total - done) / done), 60)
        text += f", about {minutes} min {rest} s left" if minutes else f", about {rest} s left"
    return text


def confirm(question: str) -> None:
    """Go on only where the person says yes; where nobody can be asked, say what to do instead."""
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        stop("There is nobody to ask. Use --yes to go ahead without a question.")
    if not is_wanted:
        raise click.Abort


def stop(message: str) -> NoReturn:
    """End with this sentence on standard error and exit code 1."""
    raise click.ClickException(message)
