"""Counts the event streams that each grant has open in this process."""

from collections import Counter
from collections.abc import Callable, Hashable

EACH_MAX = 5


class TooManyStreams(Exception):
    """A grant has as many streams open as it may."""


class OpenStreams:
    """Counts the open event streams of each owner; used by the event loop alone, so there is no lock."""

    def __init__(self) -> None:
        self._open: Counter[Hashable] = Counter()

    def take(self, owner: Hashable) -> Callable[[], None]:
        """Count one more stream of this owner, and return the function that ends it (calling it twice does no harm).
        Raises TooManyStreams."""
        if self._open[owner] >= EACH_MAX:
            raise TooManyStreams
        self._open[owner] += 1
        is_over = False

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._open[owner] -= 1
                self._open += Counter()  # drops owners without a stream

        return end
