"""The failures that a command tells the person who gave it, in one table for all commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from analytics.classification.rules import InvalidRule
from auth.errors import OAuthError
from connectors.bank_csv.profile import ProfileError
from connectors.connector import SourceError
from handlers.commands.control_socket import CommandError
from handlers.operations.profile import NoRate
from handlers.operations.recurring import CannotBeAdded
from handlers.web.errors import BadRequest
from storage.accounts import AccountAmbiguous, AccountUnknown
from storage.annotations.word_lines import InvalidWords
from storage.database import Conflict, StoreError
from storage.undo_and_merge.merges import NotOneAccount
from storage.undo_and_merge.rebuild import ImportUnknown

SENTENCES = (
    StoreError,
    ProfileError,
    SourceError,
    OAuthError,
    BadRequest,
    NoRate,
    CannotBeAdded,
    AccountUnknown,
    AccountAmbiguous,
    NotOneAccount,
    ImportUnknown,
    InvalidRule,
    InvalidWords,
)
"""Failures whose text tells a person what is wrong."""


@contextmanager
def failures_in_words(place: Path | None = None) -> Iterator[None]:
    """A context in which every expected failure becomes a CommandError; `place` is the file or folder that is named in
    an OSError's sentence if the operating system names none."""
    try:
        yield
    except SENTENCES as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        named = error.filename or place
        raise CommandError(f"{f'{named}: ' if named else ''}{error.strerror or error}.") from error
    except Conflict as error:
        raise CommandError("Something else changed the same data at the same time. Try again.") from error
