"""A store with one user, for the tests of accounts and of imports taken back."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from analytics.records import AccountRecord
from handlers.commands.exports import export
from handlers.commands.imports import import_files
from handlers.work.services import Services, open_services
from storage import connections, jobs, users
from storage.database import Session, columns_of
from storage.importing.matching.booking_keys import account_id
from storage.undo_and_merge import rebuild, undoable_imports
from storage.undo_and_merge.rebuild import Rebuilt
from storage.users import User
from tests.conftest import empty_folder
from tests.engines import ENGINE

TABLES = ("accounts", "account_sources", "transactions", "pending_transactions", "statements")
TIMES = {"created_at", "last_synced_at", "received_at", "updated_at"}


def put_aside(everybody: Session, table: str) -> None:
    """The rows of the table as an upgrade has kept them that knew nothing of contributions."""
    columns = ", ".join(columns_of(everybody, f"earlier_{table}"))
    everybody.execute(f"INSERT INTO earlier_{table} ({columns}) SELECT {columns} FROM {table}")


class Household:
    """A store with one user; imports and what they make of it."""

    def __init__(self, folder: Path) -> None:
        self.services: Services = open_services(ENGINE.settings(empty_folder(folder), RATE_LIMIT="off"))
        self.user: User = users.add(
            self.services.everybody,
            name="eva",
            password_hash=None,
            has_subscription=True,
            home_currency="EUR",
            now=self.services.clock.now(),
        )
        self.notes: list[str] = []
        self.lines: list[str] = []
        self.answers: list[int] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> int | None:
        self.notes += [question, *choices]
        return self.answers.pop(0) if self.answers else None

    def bring(self, path: Path, **choices: Any) -> str:
        """The id of the import of this file; every import has a second of its own."""
        self.services.clock.offset += timedelta(seconds=1)
        before = {each.job_id for each in undoable_imports.of_user(self.services.everybody, self.user.id)}
        import_files(self.services, self, user=self.user, files=[str(path)], **choices)
        after = {each.job_id for each in undoable_imports.of_user(self.services.everybody, self.user.id)}
        (made,) = after - before
        return made

    def undo(self, job_id: str) -> Rebuilt:
        """Take an import back."""
        now = self.services.clock.now()
        return self.services.everybody.atomically(
            lambda session: rebuild.undo(session, user=self.user, job_id=job_id, now=now)
        )

    def rows(self, table: str, *, with_times: bool = True) -> list[dict[str, Any]]:
        """What is stored in a table, but for the states that tell when it became so."""
        rows = self.services.everybody.rows(f"SELECT * FROM {table}")
        left_out = {"user_id", "added_state", "changed_state"} | (set() if with_times else TIMES)
        return sorted(({name: value for name, value in row.items() if name not in left_out} for row in rows), key=repr)

    def state(self, *, with_times: bool = True) -> dict[str, list[dict[str, Any]]]:
        """Everything that is stored of accounts and bookings."""
        return {table: self.rows(table, with_times=with_times) for table in TABLES}

    def exported(self, folder: Path) -> dict[str, bytes]:
        """Every export, byte by byte."""
        found = {}
        for name in ("jsonl", "csv", "beancount", "ofx", "camt053"):
            path = folder / f"export.{name}"
            export(self.services.everybody, self.user.id, name, path, now=self.user_time, today=self.user_time.date())
            found[name] = path.read_bytes()
        return found

    def id_by_key(self, key: str) -> str:
        """The id that an account of this key and no IBAN has."""
        (connection,) = connections.of_user(self.services.everybody, self.user.id)
        record = AccountRecord(stable_key=key, currency="EUR")
        return account_id(user_name="eva", connection_id=connection.id, account=record)

    def start_job(self) -> jobs.Job:
        """A sync that has not ended."""
        (connection,) = connections.of_user(self.services.everybody, self.user.id)
        started = self.services.everybody.atomically(
            lambda session: jobs.start(
                session,
                user_id=self.user.id,
                connection_id=connection.id,
                cooldown=timedelta(0),
                now=self.services.clock.now(),
                is_forced=True,
            )
        )
        assert started is not None
        return started

    def as_from_an_older_version(self) -> None:
        """The store as an upgrade leaves one that knew nothing of contributions."""
        for table in ("contributions", "contribution_bookings", "booking_wordings"):
            self.services.everybody.execute(f"DELETE FROM {table}")
        for table in TABLES:
            self.services.everybody.execute(f"DELETE FROM earlier_{table}")
            put_aside(self.services.everybody, table)

    @property
    def user_time(self) -> datetime:
        """A moment that does not change, for exports that state one."""
        made: datetime = self.services.everybody.rows("SELECT created_at FROM users")[0]["created_at"]
        return made
