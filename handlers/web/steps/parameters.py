"""Reads the parameters of an operation, from the text of a request to values, by the schemas of the contract alone."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from analytics.messages import Saying, message
from handlers.names import python_name
from handlers.web.errors import BadRequest, NotFound

DIGITS_MAX = 4000  # Python reads integers of at most 4,300 digits; the contract itself knows no largest page
FIELDS_MAX = 200

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

Schema = Mapping[str, Any]
TextReader = Callable[[str], Any]


class Unreadable(Saying, ValueError):
    """The text does not fit its schema; the message says what is allowed and never repeats the text."""


class Parameters:
    """The parameters of one operation, with everything prepared that does not depend on the request."""

    def __init__(self, described: Sequence[Mapping[str, Any]], *, not_found: str) -> None:
        """`described` is the contract's list of parameters; `not_found` is the message of the NotFound for a path
        parameter that does not fit its schema."""
        self._not_found = not_found
        self._path = {entry["name"]: _reader(entry["schema"]) for entry in described if entry["in"] == "path"}
        self._query = {entry["name"]: _reader(entry["schema"]) for entry in described if entry["in"] == "query"}
        self._repeated = {entry["name"] for entry in described if entry["schema"].get("type") == "array"}
        self._names = {entry["name"]: python_name(entry["name"]) for entry in described}
        self._defaults = {self._names[entry["name"]]: _default(entry["schema"]) for entry in described}
        self._required = [
            entry["name"] for entry in described if entry["in"] == "query" and entry.get("required", False)
        ]
        unknown = {entry["in"] for entry in described} - {"path", "query"}
        if unknown:
            # raised at the start, before any request, for a developer who extends the contract
            raise NotImplementedError(f"parameters in {', '.join(sorted(unknown))}")

    @property
    def names(self) -> frozenset[str]:
        """The argument names that the operation receives."""
        return frozenset(self._names.values())

    def read(self, path: Mapping[str, str], query: bytes) -> dict[str, Any]:
        """The arguments of a request by their Python names, with the defaults of those left out; unknown query
        parameters are ignored. Raises BadRequest, and NotFound for a path parameter that does not fit its schema."""
        values = dict(self._defaults)
        for name, reader in self._path.items():
            try:
                values[self._names[name]] = reader(path[name])
            except Unreadable:
                raise NotFound(self._not_found) from None
        if query and self._query:
            self._read_query(query, values)
        for name in self._required:
            if values[self._names[name]] is None:
                raise BadRequest("{name}: is required", name=name)
        return values

    def _read_query(self, query: bytes, values: dict[str, Any]) -> None:
        seen: set[str] = set()
        for name, text in pairs(query):
            reader = self._query.get(name)
            if reader is None:
                continue  # decision 8: unknown query parameters are ignored
            try:
                value = reader(text)
            except Unreadable as error:
                raise BadRequest("{name}: {reason}", name=name, reason=message(str(error))) from None
            if name in self._repeated:
                values[self._names[name]] = [*(values[self._names[name]] or ()), value]
                continue
            if name in seen:
                raise BadRequest("{name}: must be given once", name=name)
            seen.add(name)
            values[self._names[name]] = value


def form_fields(content: bytes) -> dict[str, str]:
    """The fields of an urlencoded form; raises BadRequest for one that occurs twice (RFC 6749 3.2)."""
    fields: dict[str, str] = {}
    for name, text in pairs(content):
        if name in fields:
            raise BadRequest("body: every field must be given once")
        fields[name] = text
    return fields


def pairs(encoded: bytes, *, most: int = FIELDS_MAX) -> list[tuple[str, str]]:
    """The names and values of an urlencoded text, in its order. Raises BadRequest for broken percent signs, for what is
    not UTF-8, and for more than `most` pairs."""
    try:
        text = encoded.decode()
        if "%" in text and _BROKEN_PERCENT.search(text):
            raise BadRequest("A percent sign must be followed by two hexadecimal digits")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=most)
    except UnicodeDecodeError:
        raise BadRequest("Parameters must be percent-encoded UTF-8") from None
    except ValueError:
        raise BadRequest("There must be at most {limit} parameters", limit=most) from None


def _default(schema: Schema) -> Any:
    default = schema.get("default")
    return _reader(schema)(default) if isinstance(default, str) else default


def _reader(schema: Schema) -> TextReader:
    kind = schema.get("type")
    if kind == "integer":
        return _integer_reader(schema)
    if kind == "number":
        return _number
    if kind == "string":
        return read_date if schema.get("format") == "date" else _text_reader(schema)
    if kind == "boolean":
        return _boolean
    if kind == "array":  # the parameter is repeated for each value
        return _reader(schema["items"])
    # Raised at the start, for a developer who extends the contract
    raise NotImplementedError(f"parameters of type {kind}")


def _integer_reader(schema: Schema) -> TextReader:
    least, most = schema.get("minimum"), schema.get("maximum")
    allowed = "must be an integer"
    if least is not None and most is not None:
        allowed += f" from {least} to {most}"
    elif least is not None:
        allowed += f" of at least {least}"

    def read(text: str) -> int:
        if len(text) > DIGITS_MAX:
            raise Unreadable("must have at most {limit} digits", limit=DIGITS_MAX)
        if not _INTEGER.fullmatch(text):
            raise Unreadable(allowed)
        value = int(text)
        if (least is not None and value < least) or (most is not None and value > most):
            raise Unreadable(allowed)
        return value

    return read


def _number(text: str) -> Decimal:
    if len(text) > DIGITS_MAX:
        raise Unreadable("must have at most {limit} digits", limit=DIGITS_MAX)
    if not _NUMBER.fullmatch(text):
        raise Unreadable("must be a number")
    return Decimal(text)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise Unreadable("must be true or false")
    return text == "true"


def read_date(text: str) -> date:
    """The calendar date of a text of the form YYYY-MM-DD; raises Unreadable for any other, and for a day that no month
    has."""
    # fromisoformat alone takes 20261101 and 2026-W01-1 too
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise Unreadable("must be a calendar date of the form YYYY-MM-DD")


def read_moment(text: str) -> datetime:
    """The moment of a text such as 2027-03-31T22:00:00Z, in UTC; raises Unreadable for any other, and for one without
    a time zone."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Unreadable("must be a moment with its time zone, such as 2027-03-31T22:00:00Z")


def _text_reader(schema: Schema) -> TextReader:
    words = frozenset(schema.get("enum", ()))
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    pattern = re.compile(_anchor(schema["pattern"])) if "pattern" in schema else None

    def read(text: str) -> str:
        if words and text not in words:
            raise Unreadable("must be one of {allowed}", allowed=", ".join(schema["enum"]))
        if most is not None and len(text) > most:
            raise Unreadable("must have at most {limit} characters", limit=most)
        if len(text) < least:
            raise Unreadable("must have at least {limit} characters", limit=least)
        if pattern is not None and not pattern.search(text):
            raise Unreadable("contains characters that are not allowed")
        return text

    return read


def _anchor(pattern: str) -> str:
    # In ECMAScript $ matches at the end only; in Python also before a last line feed
    return re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
