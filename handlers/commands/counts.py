"""Counts as a person says them."""


def counted(number: int, noun: str) -> str:
    """`1 booking`, `2 bookings`, `0 bookings`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
