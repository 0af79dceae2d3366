"""The command that exports all booked transactions of a user into one file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from handlers.commands.control_socket import Report
from handlers.commands.counts import quantity
from handlers.work.export_formats import Export, write
from handlers.work.services import Services
from storage import accounts
from storage.annotations import annotations, portable
from storage.database import Database
from storage.users import User


def export_bookings(
    services: Services, report: Report, *, user: User, format_: str, path: str, has_words: bool = False
) -> None:
    """Export all booked transactions of a user's accounts, hidden ones left out, into a file, with the user's own words
    if `has_words`, and report how many."""
    now, today = services.clock.now(), services.clock.today()
    count = export(services.everybody, user.id, format_, Path(path), now=now, today=today, has_words=has_words)
    report.note(f"Exported {quantity(count, 'transaction')}.")


def export(
    database: Database,
    user_id: str,
    format_: str,
    path: Path,
    *,
    now: datetime,
    today: date,
    has_words: bool = False,
) -> int:
    """Write all booked transactions of a user's accounts, hidden ones left out, into a file, with the user's own words
    if `has_words`, and return the number."""
    with database.transaction() as session, _replacement_stream(path) as stream:
        owned = accounts.of_user(session, user_id)
        words = annotations.of_user(session, user_id) if has_words else None
        said = portable.lines(session, user_id) if has_words else ()
        asked = Export(user_id=user_id, accounts=owned, now=now, today=today, words=words, said=said)
        return write(session, asked, format_, stream)


@contextmanager
def _replacement_stream(path: Path) -> Iterator[BinaryIO]:
    """A stream that replaces the file at `path` once everything is written; until then, and after a failure, the old
    content stays. A path that is no regular file, such as a pipe, is written directly. Raises OSError naming the
    path."""
    target = path.resolve()  # a symbolic link stays a link
    partial: Path | None = None
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        descriptor, name = mkstemp(dir=target.parent, prefix=".export-", suffix=".part")  # readable by its owner only
        partial = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)
