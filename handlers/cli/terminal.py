"""What a person at a terminal sees: results on standard output, notes and a progress bar on standard error."""

import sys
from typing import NoReturn

import click

BAR_CHARACTERS = 30


class Terminal:
    """A report for a person."""

    def __init__(self) -> None:
        self._bar_shown = False

    def line(self, text: str) -> None:
        """A line of the result."""
        self.end()
        click.echo(text)

    def note(self, text: str) -> None:
        """A line for the person."""
        self.end()
        click.echo(text, err=True)

    def progress(self, label: str, done: int, total: int) -> None:
        """Redraw the bar; without a terminal nothing is drawn."""
        if not sys.stderr.isatty():
            return
        filled = BAR_CHARACTERS * done // max(1, total)
        click.echo(f"\r\x1b[2K[{'#' * filled}{'.' * (BAR_CHARACTERS - filled)}] {label}", nl=False, err=True)
        self._bar_shown = True

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._bar_shown:
            click.echo(err=True)
            self._bar_shown = False


def stop(message: str) -> NoReturn:
    """End with this sentence on standard error and exit code 1."""
    raise click.ClickException(message)
