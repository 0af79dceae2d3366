"""Reads single headers of a request."""

import re

from handlers.web.errors import ContentTooLarge

_WEIGHT = re.compile(r"[01](?:\.[0-9]{0,3})?")

DIGITS_MAX = 12  # of a length; Python itself reads no number of more than 4,300


def header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """The first value of the header `name` (in lower case), itself put into lower case, without spaces around it; empty
    if there is none."""
    value: bytes = next((value for key, value in headers if key == name), b"")
    return value.decode("latin-1").strip().lower()


def check_length(headers: list[tuple[bytes, bytes]], bytes_max: int) -> None:
    """Raise ContentTooLarge for a body whose Content-Length is too large; a body without one is counted as it
    arrives."""
    declared = header(headers, b"content-length")
    if declared.isascii() and declared.isdigit() and (len(declared) > DIGITS_MAX or int(declared) > bytes_max):
        raise ContentTooLarge(bytes_max)


def weights(value: str) -> dict[str, float | None]:
    """The values in a header such as Accept, in lower case and in order, each with its weight (RFC 9110 12.4.2): 1
    where it states none, None where it states something that is no weight."""
    found: dict[str, float | None] = {}
    for part in value.lower().replace(" ", "").split(","):
        name, *parameters = part.split(";")
        given = next((each.removeprefix("q=") for each in parameters if each.startswith("q=")), "1")
        found[name] = float(given) if _WEIGHT.fullmatch(given) else None
    return found
