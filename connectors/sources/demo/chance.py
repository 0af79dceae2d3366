"""Repeatable chance: every throw depends only on the words that the dice were made of."""

from collections.abc import Sequence
from decimal import Decimal
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Repeatable dice of the demo bank: the same words (habit, account, day) give the same throws; 512 bits are enough
    for about 30 of them."""

    def __init__(self, *words: object) -> None:
        self._words = words
        self._left: int | None = None

    def below(self, count: int) -> int:
        """A random number from 0 to count - 1."""
        if self._left is None:
            self._left = int.from_bytes(blake2b("|".join(map(str, self._words)).encode(), digest_size=64).digest())
        self._left, number = divmod(self._left, count)
        return number

    def happens(self, percent: int) -> bool:
        """True in this percentage of cases."""
        return self.below(100) < percent

    def amount(self, low: str, high: str) -> Decimal:
        """A random amount in whole cents between the two, both included."""
        cents, top = int(Decimal(low) * 100), int(Decimal(high) * 100)
        return Decimal(cents + self.below(top - cents + 1)).scaleb(-2)

    def number(self, digits: int) -> str:
        """A random number of so many digits, as on invoices and terminals."""
        return str(self.below(10**digits)).zfill(digits)

    def pick(self, choices: Sequence[T]) -> T:
        """A random one of the choices."""
        return choices[self.below(len(choices))]
