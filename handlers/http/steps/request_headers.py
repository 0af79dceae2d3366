"""One header of a request, as the steps compare it."""


def header(headers: list[tuple[bytes, bytes]], name: bytes) -> str:
    """The first value of this name in lower case, without spaces around it; empty where there is none."""
    value: bytes = next((value for key, value in headers if key == name), b"")
    return value.decode("latin-1").strip().lower()
