"""How many streams of events each grant has open in this process."""

from collections import Counter
from collections.abc import Callable, Hashable

EACH_MAX = 5


class TooManyStreams(Exception):
    """A grant has as many streams open as it may."""


class OpenStreams:
    """Counts them; for the event loop alone."""

    def __init__(self) -> None:
        self._open: Counter[Hashable] = Counter()

    def take(self, owner: Hashable) -> Callable[[], None]:
        """One more stream of this owner, and what ends it, once; raises TooManyStreams."""
        if self._open[owner] >= EACH_MAX:
            raise TooManyStreams
        self._open[owner] += 1
        is_over = False

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._open[owner] -= 1
                self._open += Counter()  # forgets who has none

        return end
