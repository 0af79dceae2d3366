"""Accounts without a number: their readers put a word in its place, such as the bank's name, CSV or `unnamed`. An
export of this service has that word as the account's key; it names no account there either."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from analytics.records import UNNAMED, AccountRecord, Record
from connectors.bank_csv.profile import Profile, built_in_profiles

SLASH, DIGIT = re.compile("/"), re.compile("[0-9]")
WORDS = ("CSV", UNNAMED)
ENDS = tuple(re.compile(rf"(.+?)(/[A-Z]{{3}})?({number})") for number in ("", "[2-9]", "[1-9][0-9]"))
"""The word, the currency where each has an account, and the number of a second account of the word (`N26 2`)."""


def without_numbers(records: Iterable[Record], profiles: Sequence[Profile] | None) -> Iterator[Record]:
    """The records: an account whose key is no more than such a word is anonymous, one whose key is a word and a name is
    known by that name alone. The banks of `profiles`, the user's own, are such words too."""
    own = {_squeezed(profile.bank): profile.bank for profile in profiles or () if profile.bank}
    for record in records:
        if isinstance(record, AccountRecord) and not (record.iban or record.is_anonymous or record.is_by_name):
            yield _marked(record, own)
        else:
            yield record


def _marked(account: AccountRecord, own: Mapping[str, str]) -> AccountRecord:
    banks = {_squeezed(account.bank_name): account.bank_name} if account.bank_name else {}
    words = {**_words(), **own, **banks}
    key = _spelled(account, words)
    if key is not None:
        return replace(account, stable_key=key, is_anonymous=True)
    return replace(account, is_by_name=True) if _is_by_name(account, words) else account


def _spelled(account: AccountRecord, words: Mapping[str, str]) -> str | None:
    """The key as its reader once wrote it, where it is one of these words; None for another. Files of camt have no
    spaces in it, and those of OFX may have a bank before UNNAMED."""
    for end in ENDS:
        match = end.fullmatch(_squeezed(account.stable_key))
        if match is None or match[2] not in (None, f"/{account.currency}"):
            continue
        bank, slash, last = match[1].rpartition("/")
        word = words.get(match[1]) or (f"{bank}{slash}{UNNAMED}" if last == UNNAMED else None)
        if word is not None:
            return f"{word}{match[2] or ''}{f' {match[3]}' if match[3] else ''}"
    return None


def _is_by_name(account: AccountRecord, words: Mapping[str, str]) -> bool:
    """Whether the key is such a word and a name: that of the account, or one without a digit."""
    key, name = _squeezed(account.stable_key).removesuffix(f"/{account.currency}"), _squeezed(account.name or "")
    titles = [key[slash.end() :] for slash in SLASH.finditer(key) if key[: slash.start()] in words]
    return any(title and (title == name or not DIGIT.search(title)) for title in titles)


@cache
def _words() -> Mapping[str, str]:
    banks = [profile.bank for profile in built_in_profiles() if profile.bank]
    return {_squeezed(word): word for word in (*WORDS, *banks)}


def _squeezed(text: str) -> str:
    return "".join(text.split())
