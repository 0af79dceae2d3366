"""Reads single headers of a request."""

from handlers.http.errors import ContentTooLarge

DIGITS_MAX = 12  # of a length; Python itself reads no number of more than 4,300


def header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """The first value of this header in lower case, without spaces around it; empty if there is none."""
    value: bytes = next((value for key, value in headers if key == name), b"")
    return value.decode("latin-1").strip().lower()


def check_length(headers: list[tuple[bytes, bytes]], bytes_max: int) -> None:
    """Raise ContentTooLarge for a body whose Content-Length is too large; a body without one is counted as it
    arrives."""
    declared = header(headers, b"content-length")
    if declared.isascii() and declared.isdigit() and (len(declared) > DIGITS_MAX or int(declared) > bytes_max):
        raise ContentTooLarge(bytes_max)
