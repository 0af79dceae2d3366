"""The bar that a person sees while something takes long."""

import pytest

from handlers.cli.terminal import progress_text


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
