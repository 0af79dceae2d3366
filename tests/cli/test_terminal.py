"""What a person sees at a terminal: the bar while something takes long, and questions."""

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import StringIO
from select import select

import click
import pytest

from handlers.cli.terminal import Terminal, confirm, progress_text, stop


@pytest.mark.requirement("cli.progress")
@pytest.mark.parametrize(
    ("done", "seconds", "expected"),
    [
        (0, 9.0, "[....................]   0 % a.ofx: reading"),
        (35, 2.9, "[#######.............]  35 % a.ofx: reading"),
        (35, 7.0, "[#######.............]  35 % a.ofx: reading, about 13 s left"),
        (50, 90.0, "[##########..........]  50 % a.ofx: reading, about 1 min 30 s left"),
        (100, 90.0, "[####################] 100 % a.ofx: reading"),
    ],
)
def test_the_bar_says_how_much_is_done_and_how_long_the_rest_takes(done: int, seconds: float, expected: str) -> None:
    assert progress_text("a.ofx: reading", done, 100, seconds=seconds) == expected


@pytest.mark.requirement("cli.progress")
def test_control_characters_in_names_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().line("a\x1b]0;pwned\x07.ofx\tß\n2")
    Terminal().note("b\x9b2J\r")
    with pytest.raises(click.ClickException, match=r"c\\x1b\[2J"):
        stop("c\x1b[2J")
    assert capsys.readouterr() == ("a\\x1b]0;pwned\\x07.ofx\tß\n2\n", "b\\x9b2J\\x0d\n")


@pytest.mark.requirement("cli.progress")
def test_at_a_terminal_the_bar_is_drawn_again_in_one_line_that_ends_before_other_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "40")
    with os.fdopen(theirs, "w") as screen:
        monkeypatch.setattr("sys.stderr", screen)
        terminal = Terminal()
        terminal.progress("a.ofx: reading", 0, 0)  # a file of which nothing is known yet
        terminal.progress("a.ofx: storing, 4,000 rows", 35, 100)
        terminal.note("A word.")
        terminal.line("a.ofx: 4,000 new")
        terminal.end()
        shown = b""
        while not shown.endswith(b"A word.\r\n") and select([person], [], [], 5.0)[0]:
            shown += os.read(person, 1000)
    os.close(person)
    assert shown.decode() == (
        "\r\x1b[2K[....................]   0 % a.ofx: rea"
        "\r\x1b[2K[#######.............]  35 % a.ofx: sto\r\nA word.\r\n"
    )
    assert capsys.readouterr().out == "a.ofx: 4,000 new\n"


@pytest.mark.requirement("cli.progress")
def test_without_a_terminal_no_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    file = StringIO()
    monkeypatch.setattr("sys.stderr", file)
    terminal = Terminal()
    terminal.progress("a.ofx: reading", 1, 2)
    terminal.end()
    assert file.getvalue() == ""


class Keyboard(StringIO):
    """A terminal at which this is typed, then nothing more."""

    def isatty(self) -> bool:
        return True


@contextmanager
def standard_input() -> Iterator[None]:
    """Nothing comes on it, and it does not end."""
    read, write = os.pipe()
    before = os.dup(0)
    os.dup2(read, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        for each in (read, write, before):
            os.close(each)


@pytest.mark.requirement("cli.progress")
def test_who_does_not_answer_in_time_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard())
    with standard_input():
        assert Terminal().ask("TAN", seconds=0.01) is None
    assert capsys.readouterr().err == "TAN: "


@pytest.mark.requirement("cli.progress")
def test_a_secret_is_not_shown_while_it_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(question: str, *, hide_input: bool, err: bool) -> str:
        return "12345" if (question, hide_input, err) == ("PIN", True, True) else ""

    monkeypatch.setattr("sys.stdin", Keyboard())
    monkeypatch.setattr("click.prompt", typed)
    assert Terminal().ask("PIN", is_secret=True) == "12345"


@pytest.mark.requirement("cli.progress")
@pytest.mark.parametrize(("typed", "is_wanted"), [("y\n", True), ("n\n", False), ("", False)])
def test_only_a_yes_goes_on(monkeypatch: pytest.MonkeyPatch, typed: str, is_wanted: bool) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard(typed))
    with nullcontext() if is_wanted else pytest.raises(click.Abort):
        confirm("Remove eva?")
