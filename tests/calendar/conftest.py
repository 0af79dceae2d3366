"""The calendar of recurring payments as a calendar app reads it."""

from urllib.parse import urlsplit

from tests.explanations.conftest import Holder, Service
from tests.simplefin.conftest import GIRO, bare, booked, holder, limited, service

__all__ = ["holder", "limited", "service"]  # fixtures of SimpleFIN's tests, for these too

Event = dict[str, str]


def subscribed(service: Service, user_id: str) -> str:
    """The path of a new calendar address of this user."""
    address = service.services.authorization.calendar.make(user_id)
    assert address.startswith("http://127.0.0.1:8000/calendar/")
    return urlsplit(address).path


def pays(holder: Holder, name: str, *days: str, amount: str = "-12.99") -> None:
    """Book these charges of one payee."""
    iban = "DE91100000000123456789"
    holder.bring(GIRO, [booked(day, amount, name, counterpart_name=name, counterpart_iban=iban) for day in days])


def lines_of(body: bytes) -> list[str]:
    """Unfolded, after what RFC 5545 asks of every line has been looked at."""
    assert body.endswith(b"\r\n")
    folded = body.removesuffix(b"\r\n").split(b"\r\n")
    assert [line for line in folded if len(line) > 75 or b"\r" in line or b"\n" in line] == []
    assert [line.decode() for line in folded]  # no character is in two lines
    return body.removesuffix(b"\r\n").replace(b"\r\n ", b"").decode().split("\r\n")


def events_of(body: bytes) -> list[Event]:
    """The events, each by the names of its properties with their parameters."""
    lines, events = lines_of(body), []
    assert (lines[0], lines[1], lines[-1]) == ("BEGIN:VCALENDAR", "VERSION:2.0", "END:VCALENDAR")
    while "BEGIN:VEVENT" in lines:
        first, last = lines.index("BEGIN:VEVENT"), lines.index("END:VEVENT")
        pairs = [line.partition(":")[::2] for line in lines[first + 1 : last]]
        assert len(dict(pairs)) == len(pairs)
        events.append(dict(pairs))
        lines = lines[last + 1 :]
    return events


def read(service: Service, path: str) -> list[Event]:
    """The events at this address."""
    answer = bare(service).get(path)
    assert answer.status_code == 200, answer.text
    return events_of(answer.content)
