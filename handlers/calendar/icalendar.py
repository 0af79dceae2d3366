"""Due payments as iCalendar (RFC 5545): a whole-day event for each payment and day."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

LINE_OCTETS_MAX = 75

HEAD = (
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//Banking Data Service//Recurring payments//EN",
    "CALSCALE:GREGORIAN",
    "NAME:Recurring payments",
    "X-WR-CALNAME:Recurring payments",  # the same for apps that know no NAME
    "REFRESH-INTERVAL;VALUE=DURATION:PT12H",
    "X-PUBLISHED-TTL:PT12H",
)
NOTHING_DUE = (  # one component must be there (RFC 5545 3.6), and this one is no event
    "BEGIN:VTIMEZONE",
    "TZID:UTC",
    "BEGIN:STANDARD",
    "DTSTART:19700101T000000",
    "TZOFFSETFROM:+0000",
    "TZOFFSETTO:+0000",
    "END:STANDARD",
    "END:VTIMEZONE",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DuePayment:
    """A payment on a day; `known_since` is the day of the charge that it is foretold from, and `id` that of the
    recurring payment."""

    id: str
    day: date
    summary: str
    known_since: date


def calendar_text(payments: Iterable[DuePayment]) -> bytes:
    """The calendar. It is the same whenever it is written as long as nothing in it has changed, which its ETag stands
    on: DTSTAMP is no moment of writing."""
    events = [line for payment in payments for line in _event(payment)]
    lines = (*HEAD, *(events or NOTHING_DUE), "END:VCALENDAR")
    return b"".join(piece + b"\r\n" for line in lines for piece in _folded(line.encode()))


def _event(payment: DuePayment) -> tuple[str, ...]:
    return (
        "BEGIN:VEVENT",
        f"UID:{payment.id}-{payment.day:%Y%m%d}",
        f"DTSTAMP:{payment.known_since:%Y%m%d}T000000Z",
        f"DTSTART;VALUE=DATE:{payment.day:%Y%m%d}",
        f"DTEND;VALUE=DATE:{payment.day + timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{_escaped(payment.summary)}",
        "TRANSP:TRANSPARENT",  # nobody is busy for it
        "END:VEVENT",
    )


def _escaped(text: str) -> str:
    """A text of one line as a value (RFC 5545 3.3.11)."""
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")


def _folded(line: bytes) -> Iterator[bytes]:
    """The pieces of a line, each of 75 octets at most with the space before all but the first (RFC 5545 3.1), and no
    character in two of them."""
    mark = b""
    while len(mark + line) > LINE_OCTETS_MAX:
        end = LINE_OCTETS_MAX - len(mark)
        while line[end] & 0xC0 == 0x80:  # within a character of UTF-8
            end -= 1
        yield mark + line[:end]
        mark, line = b" ", line[end:]
    yield mark + line
