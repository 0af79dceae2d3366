"""Profiles: what a bank's CSV layout looks like, declared as facts in JSON, built in or written by the user."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from analytics.letters import plain
from storage.importing.records import AccountKind

PROFILE_BYTES_MAX = 64 * 1024
PROFILES_MAX = 1000  # of a user's folder

Mark = Literal[",", "."]
FIELDS = frozenset(
    {
        "date", "value_date", "amount", "debit", "credit", "indicator", "fee", "currency", "balance", "account",
        "account_name", "name", "payer", "payee", "counterpart_iban", "counterpart_bic", "purpose", "bank_text",
        "creditor_id", "mandate", "end_to_end_id", "purpose_code", "mcc", "gvc", "id", "reference", "original_amount",
        "original_currency", "merchant", "counterpart_bank", "debitor_id", "status",
    }
)  # fmt: skip
JOINED = frozenset({"purpose", "id"})  # fields whose columns are joined; of the others the first that is filled counts


class ProfileError(ValueError):
    """A profile that cannot be used; the message says which entry is wrong and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One layout. Column names are compared by `compared`; `docs/csv-profiles.md` explains every entry."""

    name: str
    columns: Mapping[str, tuple[str, ...]]
    bank: str | None = None
    kind: AccountKind | None = None
    header: tuple[tuple[str, ...], ...] = ()  # every entry must occur, each as one of its spellings
    shape: tuple[str, ...] = ()  # of a row, for files without a header
    encoding: str = "cp1252"  # where a line is not UTF-8
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


@lru_cache(maxsize=16384)
def compared(text: str) -> str:
    """A name as it is compared: case, accents, quotes, "#" in front and runs of spaces do not matter."""
    return " ".join(plain(text.strip().strip('"#*\ufeff\u200b')).split())


@cache
def built_in_profiles() -> tuple[Profile, ...]:
    """The profiles that ship with the service, in the order of their names."""
    folder = resources.files("connectors.bank_csv") / "profiles"
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda e: e.name)
    return tuple(parse_profile(entry.read_text("utf-8"), name=entry.name[: -len(".json")]) for entry in entries)


def load_profiles(folder: Path) -> tuple[Profile, ...]:
    """The user's own profiles: every *.json of `folder`. Raises ProfileError naming the file."""
    return parse_profiles(profile_texts(folder))


def profile_texts(folder: Path) -> Mapping[str, str]:
    """The same as texts, by file name and in the order of these. Raises ProfileError naming the file."""
    paths = sorted(path for path in folder.glob("*.json") if path.is_file() and not path.is_symlink())
    if len(paths) > PROFILES_MAX:
        raise ProfileError(f"more than {PROFILES_MAX} profiles")
    return {path.name: profile_text(path) for path in paths}


def profile_text(path: Path) -> str:
    """The text of a profile's file; raises ProfileError naming the file where it is no text or too long."""
    if path.stat().st_size > PROFILE_BYTES_MAX:
        raise ProfileError(f"{path.name}: larger than {PROFILE_BYTES_MAX} bytes")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path.name}: {error}") from None


def parse_profiles(texts: Mapping[str, str]) -> tuple[Profile, ...]:
    """The profiles that these files declare, text by file name. Raises ProfileError naming the file."""
    profiles = []
    for name, text in texts.items():
        try:
            profiles.append(parse_profile(text, name=name.removesuffix(".json")))
        except ProfileError as error:
            raise ProfileError(f"{name}: {error}") from None
    return tuple(profiles)


def parse_profile(text: str, *, name: str) -> Profile:
    """The profile that a JSON text declares, checked entry by entry."""
    try:
        entries = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise ProfileError("not valid JSON") from None
    if not isinstance(entries, dict):
        raise ProfileError("not a JSON object")
    known = {
        "about", "bank", "kind", "header", "shape", "encoding", "delimiter", "columns", "date", "decimal", "currency",
        "group", "debit_words", "credit_words", "pending", "skip", "labels", "inverted", "minor_units",
        "account_per_currency", "ignored",
    }  # fmt: skip
    if unknown := sorted(set(entries) - known):
        raise ProfileError(f"unknown entry {unknown[0]!r}; known are {', '.join(sorted(known))}")
    columns = _columns(entries.get("columns", {}))
    kind = _choice(entries, "kind", get_args(AccountKind))
    decimal = _choice(entries, "decimal", (",", "."))
    profile = Profile(
        name=name,
        columns=columns,
        bank=_text(entries, "bank"),
        kind=kind,  # type: ignore[arg-type]  # one of its values
        header=tuple(tuple(map(compared, _words(entry, "header"))) for entry in _list(entries, "header")),
        shape=tuple(str(entry) for entry in _list(entries, "shape")),
        encoding=_encoding(entries),
        delimiter=_choice(entries, "delimiter", (";", ",", "\t", "|")),
        date=_words(entries.get("date", []), "date"),
        decimal=decimal,  # type: ignore[arg-type]  # one of its values
        currency=_text(entries, "currency"),
        group=_text(entries, "group"),
        debit_words=tuple(map(compared, _words(entries.get("debit_words", []), "debit_words"))),
        credit_words=tuple(map(compared, _words(entries.get("credit_words", []), "credit_words"))),
        pending=_conditions(entries, "pending"),
        skip=_conditions(entries, "skip"),
        labels=_labels(entries),
        is_inverted=_flag(entries, "inverted"),
        is_in_minor_units=_flag(entries, "minor_units"),
        is_account_per_currency=_flag(entries, "account_per_currency"),
        is_ignored=_flag(entries, "ignored"),
    )
    _check_whole(profile)
    return profile


def _check_whole(profile: Profile) -> None:
    if bool(profile.header) == bool(profile.shape):
        raise ProfileError("either header (names that the header row holds) or shape (of a row) is needed")
    if wrong := sorted(set(profile.shape) - SHAPES):
        raise ProfileError(f"shape: {wrong[0]!r} is none of {', '.join(sorted(SHAPES))}")
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


def _columns(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ProfileError("columns: an object is needed")
    if unknown := sorted(set(value) - FIELDS):
        raise ProfileError(f"columns: unknown field {unknown[0]!r}; known are {', '.join(sorted(FIELDS))}")
    return {name: _references(entry, f"columns.{name}") for name, entry in value.items()}


def _references(value: object, where: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    if not entries or not all(isinstance(entry, str | int) and not isinstance(entry, bool) for entry in entries):
        raise ProfileError(f"{where}: a column name, a column number or a list of them is needed")
    return tuple(f"@{entry}" if isinstance(entry, int) else compared(str(entry)) for entry in entries)


def _words(value: object, where: str) -> tuple[str, ...]:
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, str) for entry in entries):
        raise ProfileError(f"{where}: texts are needed")
    return tuple(str(entry) for entry in entries)


def _list(entries: Mapping[str, object], key: str) -> Sequence[object]:
    value = entries.get(key, [])
    if not isinstance(value, list):
        raise ProfileError(f"{key}: a list is needed")
    return value


def _conditions(entries: Mapping[str, object], key: str) -> dict[str, tuple[str, ...]]:
    value = entries.get(key, {})
    if not isinstance(value, dict):
        raise ProfileError(f"{key}: an object of column and texts is needed")
    return {compared(str(name)): tuple(map(compared, _words(words, f"{key}.{name}"))) for name, words in value.items()}


def _labels(entries: Mapping[str, object]) -> dict[str, str]:
    value = entries.get("labels", {})
    if not isinstance(value, dict) or not all(field in FIELDS for field in value.values()):
        raise ProfileError("labels: an object of label and field is needed")
    return {str(label): str(field) for label, field in value.items()}


def _text(entries: Mapping[str, object], key: str) -> str | None:
    value = entries.get(key)
    if value is not None and (not isinstance(value, str) or not value or len(value) > 140):
        raise ProfileError(f"{key}: a short text is needed")
    return value


def _flag(entries: Mapping[str, object], key: str) -> bool:
    value = entries.get(key, False)
    if not isinstance(value, bool):
        raise ProfileError(f"{key}: true or false is needed")
    return value


def _choice(entries: Mapping[str, object], key: str, allowed: Sequence[str]) -> str | None:
    value = entries.get(key)
    if value is not None and value not in allowed:
        raise ProfileError(f"{key}: none of {', '.join(map(repr, allowed))}")
    return None if value is None else str(value)


def _encoding(entries: Mapping[str, object]) -> str:
    allowed = (
        "utf-8",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1257",
        "cp850",
        "cp852",
        "iso8859-15",
        "iso8859-2",
        "mac-roman",
    )
    return _choice(entries, "encoding", allowed) or "cp1252"
