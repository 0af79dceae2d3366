"""Writes due payments as iCalendar (RFC 5545): a whole-day event for each payment and day."""

from collections.abc import Iterable, Iterator
from datetime import date, timedelta

from msgspec import Struct

LINE_OCTETS_MAX = 75

HEAD = (
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Banking Data Service//Recurring payments//EN",
    "CALSCALE:GREGORIAN",
    "NAME:Recurring payments",
    "X-WR-CALNAME:Recurring payments",  # the name for apps that do not know NAME
    "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
    "X-PUBLISHED-TTL:PT12H",
)
NOTHING_DUE = (  # a calendar needs at least one component (RFC 5545 3.6); a time zone shows no event
    "BEGIN:VTIMEZONE",
    "TZID:UTC",
    "BEGIN:STANDARD",
    "DTSTART:19700101T000000",
    "TZOFFSETFROM:+0000",
    "TZOFFSETTO:+0000",
    "END:STANDARD",
    "END:VTIMEZONE",
)


class DuePayment(Struct, frozen=True, kw_only=True):
    """A payment that falls due on `day`; `id` is that of the recurring payment, `summary` the text that a calendar
    shows, and `known_since` the day of the charge from which this payment is predicted."""

    id: str
    day: date
    summary: str
    known_since: date


def calendar_text(payments: Iterable[DuePayment]) -> bytes:
    """The calendar as iCalendar text. Its bytes stay the same as long as no payment changes, because its ETag is their
    hash; so DTSTAMP is not the moment of writing."""
    events = [line for payment in payments for line in _event(payment)]
    lines = (*HEAD, *(events or NOTHING_DUE), "END:VCALENDAR")
    return b"".join(piece + b"\r\n" for line in lines for piece in _fold(line.encode()))


def _event(payment: DuePayment) -> tuple[str, ...]:
    return (
        "BEGIN:VEVENT",
        f"UID:{payment.id}-{payment.day:%Y%m%d}",
        f"DTSTAMP:{payment.known_since:%Y%m%d}T000000Z",
        f"DTSTART;VALUE=DATE:{payment.day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{payment.day + timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{_escape(payment.summary)}",
        "TRANSP:TRANSPARENT",  # nobody is busy for it
        "END:VEVENT",
    )


def _escape(text: str) -> str:
    """The text, which has no line feed, escaped for use as a value (RFC 5545 3.3.11)."""
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")


def _fold(line: bytes) -> Iterator[bytes]:
    """The pieces of a folded line: at most 75 octets each, all but the first beginning with a space (RFC 5545 3.1), and
    no character split between two pieces."""
    mark = b""
    while len(mark + line) > LINE_OCTETS_MAX:
        end = LINE_OCTETS_MAX - len(mark)
        while line[end] & 0xC0 == 0x80:  # within a character of UTF-8
            end -= 1
        yield mark + line[:end]
        mark, line = b" ", line[end:]
    yield mark + line
