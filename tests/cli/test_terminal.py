"""The bar that a person sees while something takes long."""

import os
import pty
from io import StringIO
from select import select

import pytest

from handlers.cli.terminal import Terminal, progress_text


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
