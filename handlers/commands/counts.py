"""Counts in words."""


def quantity(number: int, noun: str) -> str:
    """The number with its noun in singular or plural: `1 booking`, `2 bookings`, `0 bookings`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
