"""Profiles: descriptions of a bank's CSV layout in JSON, built in or written by the user."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from analytics.letters import plain
from analytics.messages import Saying, message
from analytics.records import AccountKind

PROFILE_BYTES_MAX = 64 * 1024
PROFILES_MAX = 1000  # in a user's folder
LAYOUT_CHARACTERS_MAX = 4000  # of a profile that a person chose, which is sent as part of an address
DATES_MAX = 20
DATE_CHARACTERS_MAX = 20

Mark = Literal[",", "."]
FIELDS = frozenset(
    {
        "date", "value_date", "amount", "debit", "credit", "indicator", "fee", "currency", "balance", "account",
        "account_name", "name", "payer", "payee", "counterpart_iban", "counterpart_bic", "purpose", "bank_text",
        "creditor_id", "mandate", "end_to_end_id", "purpose_code", "mcc", "gvc", "id", "reference", "original_amount",
        "original_currency", "merchant", "counterpart_bank", "debitor_id", "status",
    }
)  # fmt: skip
Standing = Literal["shared", "kept", "chosen", "offered"]
JOINED = frozenset({"purpose", "id"})  # fields whose columns are joined; of other fields the first filled column counts


_ENCODING = "cp1252"
_CODE = re.compile("[A-Z]{3}")
_DATE_PARTS = re.compile("YYYY|YY|MMM|MM|DD")


class ProfileError(Saying, ValueError):
    """A profile that cannot be used; the message says which entry is wrong and what is allowed."""


class Profile(Struct, frozen=True, kw_only=True):
    """One CSV layout. Column names are compared by `comparable`; `docs/csv-profiles.md` explains every entry.

    `standing` says for which files it is: those of all users ("shared"), those of one user ("kept"), a single file
    ("chosen"), or those of a ZIP container that have its columns ("offered"). `account` is the id of the account that a
    user has kept with it, for files that name none.
    """

    name: str
    columns: Mapping[str, tuple[str, ...]]
    bank: str | None = None
    kind: AccountKind | None = None
    header: tuple[tuple[str, ...], ...] = ()  # every entry must occur, in one of its spellings
    shape: tuple[str, ...] = ()  # of the rows of files without a header
    encoding: str = _ENCODING  # for lines that are not UTF-8
    delimiter: str | None = None
    date: tuple[str, ...] = ()
    decimal: Mark | None = None
    currency: str | None = None
    group: str | None = None  # layouts that may follow each other in one file
    debit_words: tuple[str, ...] = ()
    credit_words: tuple[str, ...] = ()
    pending: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)  # inside the purpose: label -> field
    is_inverted: bool = False
    is_in_minor_units: bool = False
    is_account_per_currency: bool = False
    is_ignored: bool = False  # a section without bookings, such as the orders of a depot
    account: str | None = None  # our id of the account for files that name none; not declared, but kept with it
    standing: Standing = "shared"  # by all users; "kept" by one, and then first; "chosen" for this file alone, or
    # "offered" to the files of a container, for those with its columns


@lru_cache(maxsize=16384)
def comparable(text: str) -> str:
    """A name in the form used for comparisons: case, accents, repeated spaces, and quotes, "#" and "*" around it are
    ignored."""
    return " ".join(plain(text.strip().strip('"#*\ufeff\u200b')).split())


@cache
def built_in_profiles() -> tuple[Profile, ...]:
    """The profiles that come with the service, sorted by name."""
    folder = resources.files("connectors.bank_csv") / "profiles"
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda e: e.name)
    return tuple(parse_profile(entry.read_text("utf-8"), name=entry.name[: -len(".json")]) for entry in entries)


def load_profiles(folder: Path) -> tuple[Profile, ...]:
    """The user's own profiles: those of `profile_texts`, parsed. Raises ProfileError naming the file."""
    return parse_profiles(profile_texts(folder))


def profile_texts(folder: Path) -> Mapping[str, str]:
    """The text of each profile in `folder` by file name, sorted; symbolic links are no profiles. Raises ProfileError
    naming the file, or for more than 1,000 of them."""
    paths = sorted(path for path in folder.glob("*.json") if path.is_file() and not path.is_symlink())
    if len(paths) > PROFILES_MAX:
        raise ProfileError("more than {limit} profiles", limit=PROFILES_MAX)
    return {path.name: profile_text(path) for path in paths}


def profile_text(path: Path) -> str:
    """The text of a profile's file. Raises ProfileError naming the file where it is no text or too long."""
    if path.stat().st_size > PROFILE_BYTES_MAX:
        raise ProfileError("{name}: larger than {limit} bytes", name=path.name, limit=PROFILE_BYTES_MAX)
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise ProfileError("{name}: not a text in UTF-8", name=path.name) from None


def parse_profiles(texts: Mapping[str, str]) -> tuple[Profile, ...]:
    """The profiles that these texts declare, given by file name. Raises ProfileError naming the file."""
    profiles = []
    for name, text in texts.items():
        try:
            profiles.append(parse_profile(text, name=name.removesuffix(".json")))
        except ProfileError as error:
            raise ProfileError("{name}: {reason}", name=name, reason=message(str(error))) from None
    return tuple(profiles)


def parse_profile(text: str, *, name: str) -> Profile:
    """The profile that a JSON text declares, checked entry by entry. Raises ProfileError."""
    try:
        entries = json.loads(text)
        text.encode("utf-8"), json.dumps(entries, ensure_ascii=False).encode("utf-8")  # no lone surrogate
    except (ValueError, RecursionError):
        raise ProfileError("not valid JSON") from None
    if not isinstance(entries, dict):
        raise ProfileError("not a JSON object")
    if unknown := sorted(set(entries) - {*ENTRIES, "about"}):
        known = ", ".join(sorted({*ENTRIES, "about"}))
        raise ProfileError("unknown entry {entry}; known are {known}", entry=f"{unknown[0]!r}", known=known)
    read = {entry.field: entry.read(entries[key], key) for key, entry in ENTRIES.items() if key in entries}
    profile = Profile(name=name, **{"columns": {}, **read})
    _check_whole(profile)
    return profile


def chosen_texts(text: str) -> list[str]:
    """The profiles that a person chose, each as its JSON text: one, or a list for the layouts in a ZIP container.
    Raises ProfileError for an empty list; the texts are not checked yet."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None  # parsing each text says what is wrong
    if said == []:
        raise ProfileError("an empty list")
    return [json.dumps(each) for each in said] if isinstance(said, list) else [text]


def chosen_profile(text: str) -> Profile:
    """The profile that a person chose for one file, checked more strictly than an operator's, because its content is
    shown again. Raises ProfileError."""
    if len(text) > LAYOUT_CHARACTERS_MAX:
        raise ProfileError("longer than {limit} characters", limit=LAYOUT_CHARACTERS_MAX)
    profile = parse_profile(text, name="chosen")
    if profile.currency is not None and not _CODE.fullmatch(profile.currency):
        raise ProfileError('currency: three capital letters are needed, such as "EUR"')
    if len(profile.date) > DATES_MAX or not all(map(_is_date, profile.date)):
        raise ProfileError(
            'date: up to {limit} formats of day, month and year are needed, such as "DD.MM.YYYY"', limit=DATES_MAX
        )
    return replace(profile, standing="chosen")


def profile_json(profile: Profile) -> str:
    """The JSON text that declares a profile; `parse_profile` reads it."""
    entries = {key: entry.write(getattr(profile, entry.field)) for key, entry in ENTRIES.items()}
    return json.dumps({key: value for key, value in entries.items() if value}, ensure_ascii=False)


def layout_id(profile: Profile) -> str:
    """An id, "lay_" and 32 hexadecimal digits, made of the header names or the shape, so that profiles for files with
    the same columns have the same one."""
    columns = [sorted(sorted(spellings) for spellings in profile.header), profile.shape]
    return f"lay_{hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:32]}"


def _check_whole(profile: Profile) -> None:
    if bool(profile.header) == bool(profile.shape):
        raise ProfileError("either header (names that the header row holds) or shape (of a row) is needed")
    if wrong := sorted(set(profile.shape) - SHAPES):
        raise ProfileError(
            "shape: {shape} is none of {shapes}", shape=f"{wrong[0]!r}", shapes=", ".join(sorted(SHAPES))
        )
    if profile.is_ignored:
        return
    if "date" not in profile.columns:
        raise ProfileError("columns: date is missing")
    if not {"amount", "debit", "credit"} & set(profile.columns):
        raise ProfileError("columns: amount, or debit and credit, is missing")
    if "indicator" in profile.columns and not (profile.debit_words or profile.credit_words):
        raise ProfileError("debit_words or credit_words are needed with an indicator column")
    if not profile.date:
        raise ProfileError('date is missing; for example "DD.MM.YYYY"')


SHAPES = frozenset({"date", "amount", "currency", "iban", "digits", "text", "blank", "any", "mark", "figure"})


def _columns(value: object, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ProfileError("{where}: an object is needed", where=where)
    if unknown := sorted(set(value) - FIELDS):
        raise ProfileError(
            "{where}: unknown field {field}; known are {known}",
            where=where,
            field=f"{unknown[0]!r}",
            known=", ".join(sorted(FIELDS)),
        )
    return {name: _references(entry, f"{where}.{name}") for name, entry in value.items()}


def _references(value: object, where: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    if not entries or not all(isinstance(entry, str | int) and not isinstance(entry, bool) for entry in entries):
        raise ProfileError("{where}: a column name, a column number or a list of them is needed", where=where)
    return tuple(f"@{entry}" if isinstance(entry, int) else comparable(str(entry)) for entry in entries)


def _texts(value: object, where: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, str) for entry in entries):
        raise ProfileError("{where}: texts are needed", where=where)
    return tuple(str(entry) for entry in entries)


def _words(value: object, where: str) -> tuple[str, ...]:
    return tuple(map(comparable, _texts(value, where)))


def _list(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise ProfileError("{where}: a list is needed", where=where)
    return value


def _header(value: object, where: str) -> tuple[tuple[str, ...], ...]:
    return tuple(_words(entry, where) for entry in _list(value, where))


def _shape(value: object, where: str) -> tuple[str, ...]:
    return tuple(str(entry) for entry in _list(value, where))


def _conditions(value: object, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ProfileError("{where}: an object of column and texts is needed", where=where)
    return {comparable(str(name)): _words(words, f"{where}.{name}") for name, words in value.items()}


def _labels(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name in FIELDS for name in value.values()):
        raise ProfileError("{where}: an object of label and field is needed", where=where)
    return {str(label): str(field) for label, field in value.items()}


def _text(value: object, where: str) -> str | None:
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= 140 or not value.isprintable()):
        raise ProfileError("{where}: a short text is needed", where=where)
    return value


def _is_date(text: str) -> bool:
    parts = sorted(part[0] for part in _DATE_PARTS.findall(text))
    return parts == ["D", "M", "Y"] and len(text) <= DATE_CHARACTERS_MAX and text.isprintable()


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ProfileError("{where}: true or false is needed", where=where)
    return value


def _one_of(*allowed: str, default: str | None = None) -> Callable[[object, str], str | None]:
    def read(value: object, where: str) -> str | None:
        if value is not None and value not in allowed:
            raise ProfileError("{where}: none of {allowed}", where=where, allowed=", ".join(map(repr, allowed)))
        return default if value is None else str(value)

    return read


def _one_or_all(entries: Sequence[str | int]) -> object:
    return entries[0] if len(entries) == 1 else list(entries)


def _written_columns(columns: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    return {
        field: _one_or_all([int(text[1:]) if text.startswith("@") else text for text in references])
        for field, references in columns.items()
    }


class ProfileEntry(NamedTuple):
    """An entry of a profile: its field of `Profile`, how its JSON value is read, and how it is written again; what is
    empty when written is left out."""

    field: str
    read: Callable[[Any, str], Any]
    write: Callable[[Any], object] = lambda value: value


ENCODINGS = (
    "utf-8", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1257", "cp850", "cp852", "iso8859-15", "iso8859-2",
    "mac-roman",
)  # fmt: skip
ENTRIES: Mapping[str, ProfileEntry] = {
    "bank": ProfileEntry("bank", _text),
    "kind": ProfileEntry("kind", _one_of(*get_args(AccountKind))),
    "header": ProfileEntry("header", _header, lambda header: list(map(_one_or_all, header))),
    "shape": ProfileEntry("shape", _shape),
    "encoding": ProfileEntry(
        "encoding", _one_of(*ENCODINGS, default=_ENCODING), lambda text: text.replace(_ENCODING, "")
    ),
    "delimiter": ProfileEntry("delimiter", _one_of(";", ",", "\t", "|")),
    "columns": ProfileEntry("columns", _columns, _written_columns),
    "date": ProfileEntry("date", _texts),
    "decimal": ProfileEntry("decimal", _one_of(",", ".")),
    "currency": ProfileEntry("currency", _text),
    "group": ProfileEntry("group", _text),
    "debit_words": ProfileEntry("debit_words", _words),
    "credit_words": ProfileEntry("credit_words", _words),
    "pending": ProfileEntry("pending", _conditions),
    "skip": ProfileEntry("skip", _conditions),
    "labels": ProfileEntry("labels", _labels),
    "inverted": ProfileEntry("is_inverted", _flag),
    "minor_units": ProfileEntry("is_in_minor_units", _flag),
    "account_per_currency": ProfileEntry("is_account_per_currency", _flag),
    "ignored": ProfileEntry("is_ignored", _flag),
}
"""The entries of a profile, by their name in JSON; `about` is for people."""
