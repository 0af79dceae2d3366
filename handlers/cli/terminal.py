"""Output for a person at a terminal, and questions to them: results go to standard output, notes and a progress bar to
standard error."""

import os
import select
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

import click

BAR_CHARACTERS = 20
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
REST_AFTER = 3.0  # seconds; before that an estimate of the rest jumps about


class Terminal:
    """Prints a command's results, notes and progress for a person, and asks the person questions."""

    def __init__(self, *, keeps_notes: bool = False) -> None:
        """`keeps_notes` holds notes back until `release`, where they would report a success too early."""
        self._bar_shown = False
        self._began = 0.0
        self._kept: list[str] | None = [] if keeps_notes else None
        self._typed = b""
        self._has_ended = False

    def line(self, text: str) -> None:
        """Print a line of the result."""
        self.end()
        with writing():
            click.echo(visible(text))

    def note(self, text: str) -> None:
        """Print a note for the person, or keep it until `release`."""
        if self._kept is not None:
            self._kept.append(text)
            return
        self.end()
        click.echo(visible(text), err=True)

    def release(self) -> None:
        """Print the notes that were kept, now that what they say is true."""
        kept, self._kept = self._kept or (), None
        for text in kept:
            self.note(text)

    def progress(self, label: str, done: int, total: int) -> None:
        """Redraw the progress bar; nothing is drawn without a terminal."""
        if not sys.stderr.isatty():
            return
        now = time.monotonic()
        if not self._bar_shown:
            self._began = now
        text = progress_text(visible(label), done, max(1, total), seconds=now - self._began)
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps could not be drawn again
        click.echo(f"\r\x1b[2K{text}", nl=False, err=True)
        self._bar_shown = True

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        """Ask the person which of the choices is meant, and return its index from 0; None without a terminal."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        self.note(question)
        for number, choice in enumerate(choices, start=1):
            self.note(f"  {number}  {choice}")
        return int(click.prompt("Which one", type=click.IntRange(1, len(choices)), err=True)) - 1

    def ask(self, question: str, *, is_secret: bool = False, seconds: float | None = None) -> str | None:
        """A line that the person types (or the next one of standard input where that is no terminal), trimmed, except
        for a secret typed at a terminal. None at the end of the input, and if no line comes within `seconds`. A secret
        is not shown while it is typed, unless `seconds` is given."""
        self.end()
        if seconds is None and is_secret and sys.stdin.isatty():
            return str(click.prompt(question, hide_input=True, err=True))
        if question and sys.stdin.isatty():
            click.echo(f"{question}: ", nl=False, err=True)
        return self._line(None if seconds is None else time.monotonic() + seconds)

    def _line(self, until: float | None) -> str | None:
        """The next line of standard input, trimmed; None at its end, and once the time `until` (by the monotonic clock)
        has come. Read without a buffer: `select` would overlook further lines that lie in one."""
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
        """End the line of the progress bar, if one is drawn."""
        if self._bar_shown:
            click.echo(err=True)
            self._bar_shown = False


def visible(text: str) -> str:
    """The text with control characters spelled out: names of files and of other people's bookings must not steer the
    terminal. Tabs and line ends stay."""
    return text.translate(CONTROLS)


def progress_text(label: str, done: int, total: int, *, seconds: float) -> str:
    """The bar, the percentage, the label and, after three seconds, the time left at the speed so far, in one line."""
    filled = BAR_CHARACTERS * done // total
    text = f"[{'#' * filled}{'.' * (BAR_CHARACTERS - filled)}] {100 * done // total:3} % {label}"
    if 0 < done < total and seconds >= REST_AFTER:
        minutes, rest = divmod(round(seconds * (total - done) / done), 60)
        text += f", about {minutes} min {rest} s left" if minutes else f", about {rest} s left"
    return text


def confirm(question: str) -> None:
    """Ask the person, and abort unless they say yes; stop with a hint at --yes where nobody can be asked."""
    try:
        is_wanted = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        stop("There is nobody to ask. Use --yes to go ahead without a question.")
    if not is_wanted:
        raise click.Abort


@contextmanager
def writing(place: str = "standard output") -> Iterator[None]:
    """A context for code that writes the result; `place` says where, for the message. If writing fails the command
    ends: with the reason, or without a word where the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(1) from None
    except OSError as error:
        stop(f"{place}: {error.strerror}.")


def stop(message: str) -> NoReturn:
    """End the program with this sentence on standard error and exit code 1, by raising ClickException."""
    raise click.ClickException(visible(message))
