"""Syncs by command: started like those of POST /sync, and followed to their end."""

import time
from collections.abc import Iterable

from connectors.bank_csv.layouts import GUESSED
from handlers import integrity_sentences
from handlers.commands.control_socket import CommandError, Interrupted, Report
from handlers.commands.counts import quantity
from handlers.work.services import Services
from handlers.work.sync.engine import Started
from storage import connections, jobs, users
from storage.connections import StoredConnection
from storage.jobs import Job
from storage.users import User

WATCH_PAUSE = 0.5  # seconds between two looks at a sync that waits for its bank, unless it is due before
STEPS = {"pending": 0, "syncing": 1, "importing": 2, "completed": 3, "failed": 3}


def sync(services: Services, report: Report, *, user: User | None, is_forced: bool = False) -> None:
    """Sync the connections of one user or of everybody, one after the other, and report on each, under the same
    cool-down as POST /sync unless `is_forced`; the limits of a source always hold. A sync that is under way or was cut
    off is followed to its end instead. CommandError at the end if a sync failed, refused a file or was left incomplete
    by its bank."""
    who = [user] if user else users.everyone(services.everybody)
    failed, done = 0, []
    for each in who:
        for connection in connections.of_user(services.everybody, each.id):
            started = _or_under_way(services, connection, services.sync_engine.start(connection, is_forced=is_forced))
            if started is None:
                report.line(f"{each.name}\t{connection.bank_name}\tskipped: synced recently")
                continue
            try:
                job = _watch(services, report, connection, started)
                report.line(f"{each.name}\t{connection.bank_name}\t{new_transactions(job)}")
                done.append((connection, job))
            except CommandError as error:
                failed += 1
                report.line(f"{each.name}\t{connection.bank_name}\tfailed: {error}")
    if failed:
        raise CommandError(f"{quantity(failed, 'sync')} failed.")
    check_completeness(services, done)


def first_sync(
    services: Services, report: Report, connection: StoredConnection, job_id: str | None = None
) -> Job | None:
    """Run the sync that belongs to connecting a bank, which begins no cool-down (decision 25), and return its finished
    job; `job_id` is the id of a new one. A sync that is running, or was cut off, is followed instead. None if the
    connection was synced too recently, or its source still wants a pause. CommandError if the sync fails or may not be
    started."""
    started = services.sync_engine.start(connection, is_first=True, job_id=job_id)
    going = _or_under_way(services, connection, started)
    return _watch(services, report, connection, going) if going is not None else None


def _or_under_way(services: Services, connection: StoredConnection, started: Started) -> Started | None:
    """What was started; else the sync that is under way, of the server or of a command that was cut off, which goes on.
    None if the connection was synced too recently."""
    if started.job is not None or started.error is not None:
        return started
    running = jobs.find_running(services.everybody, connection.user_id, connection.id)
    return Started(job=running) if running is not None else None


def new_transactions(job: Job) -> str:
    """The number of new transactions that a completed sync brought, in words."""
    assert job.new_transactions is not None, "only a completed job has a count"
    return quantity(job.new_transactions, "new transaction")


def check_completeness(services: Services, done: Iterable[tuple[StoredConnection, Job]]) -> None:
    """Raise CommandError if these syncs refused files, or a live source (a bank or provider asked over the network)
    left something out; a job's notes on guesses about accepted files do not count."""
    files, banks = 0, list[str]()
    for connection, job in done:
        refusals = sum(not each.reason.startswith(GUESSED) for each in job.refusals)
        if connection.connector not in services.connecting.sources:
            files += refusals
        elif refusals:
            banks.append(f"Not everything came from {connection.bank_name}.")
    sentences = [f"{quantity(files, 'file')} refused.", *banks] if files else banks
    if sentences:
        raise CommandError(" ".join(sentences))


def _watch(services: Services, report: Report, connection: StoredConnection, started: Started) -> Job:
    """Follow a sync to its end, report refused files and contradictions between bookings and balances, and return its
    job. Raises CommandError if it was not started, fails, or is left unfinished by a server that stops, and Interrupted
    while it goes on in the server."""
    job = started.job
    if job is None:
        raise CommandError(started.error or f"{connection.bank_name} was synced recently. Try again later.")
    while not job.is_final:
        try:
            report.progress(f"{connection.bank_name}: {job.status}", STEPS[job.status], STEPS["completed"])
        except Interrupted as interrupted:
            raise Interrupted(f"The sync of {connection.bank_name} goes on in the server as {job.id}.") from interrupted
        read = services.sync_engine.read(job.user_id, job.id)
        assert read is not None, "a job vanished"
        if read.status == job.status:
            if services.sync_engine.stopped.is_set():
                raise CommandError(f"{connection.bank_name}: the sync goes on after the server's next start.")
            due_in = services.sync_engine.seconds_until_due(read)
            time.sleep(min(due_in or WATCH_PAUSE, WATCH_PAUSE))
        job = read
    report.progress(f"{connection.bank_name}: {job.status}", STEPS["completed"], STEPS["completed"])
    for refusal in job.refusals:
        what = "" if refusal.reason.startswith(GUESSED) else "refused: "
        report.line(f"{connection.bank_name}: {refusal.name}: {what}{refusal.reason}")
    if job.status == "failed":
        raise CommandError(f"{connection.bank_name}: {job.error}")
    brought = connections.account_ids(services.everybody, job.user_id, connection.id)
    today = services.clock.today()
    for wrong in integrity_sentences.warnings_of(services.everybody, job.user_id, brought, today=today):
        report.line(f"{connection.bank_name}: {wrong}")
    return job
