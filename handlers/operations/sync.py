"""POST /sync and GET /sync/{syncId} (interface 4.8, 4.9)."""

from collections.abc import Mapping
from datetime import timedelta
from math import ceil
from typing import Any

from starlette.concurrency import run_in_threadpool

from analytics.messages import message
from auth.apps.clients import PAGE
from auth.principal import Principal
from connectors.connector import Person
from handlers import json_shapes
from handlers.operations.covered_jobs import check_covered, hide_uncovered
from handlers.operations.selection import listed_ids
from handlers.web.errors import BadRequest, NotFound, TooManyRequests
from handlers.web.request import Answer, Request
from handlers.work.services import Services
from handlers.work.sync.presence import person_at
from storage import accounts, connections, jobs
from storage.connections import SHARED, StoredConnection

ACCOUNT_IDS_MAX = 50  # interface 8; the contract bounds the body, this also counts the query's ids (decision 6)


def start_sync(
    services: Services, request: Request, *, account_ids: str | None, body: Mapping[str, Any] | None
) -> Answer:
    """Start a sync job for every selected connection that was not synced too recently (decisions 6, 25, 27), and answer
    with the jobs (202); one that cannot be synced is among them as failed, with the reason. Raises NotFound without
    connections, and TooManyRequests if all were synced recently."""
    user_id = request.principal.user_id
    meant = _connections_of(
        services, request.principal, listed_ids(account_ids) | set((body or {}).get("accountIds") or ())
    )
    if not meant:
        raise NotFound("No bank connections found")
    attended = _person(request)
    started = [services.sync_engine.start(each, attended=attended, keeps_plan=True) for each in meant]
    summaries = [
        {
            "syncId": each.job.id if each.job else None,
            "status": each.job.status if each.job else "failed",
            "error": message(each.error) if each.error is not None else None,
        }
        for each in started
        if each.job or each.error
    ]
    if not summaries:
        seconds = _seconds_left(services, user_id, meant)
        raise TooManyRequests(
            "All bank connections were synced recently. Try again in {seconds} seconds",
            seconds=seconds,
            retry_after=seconds,
        )
    jobs_started = [each.job.id for each in started if each.job]
    return Answer(
        body={"syncJobs": summaries, "skippedConnections": len(started) - len(summaries)},
        status=202,
        headers={"location": f"{request.path}/{jobs_started[0]}"} if jobs_started else {},
    )


async def get_sync_job(services: Services, request: Request, *, sync_id: str) -> Answer:
    """The state of a sync job, advanced by this very request, which holds no thread while it waits for the source
    (decision 26). Raises NotFound."""
    caller = request.principal
    if caller.coverage is not None:
        await run_in_threadpool(check_covered, services, caller, sync_id)
    job = await services.sync_engine.wait_for(caller.user_id, sync_id)
    if job is None:
        raise NotFound("Sync job not found")
    if caller.coverage is not None:
        job = await run_in_threadpool(hide_uncovered, services.of(caller.user_id), caller, job)
    wait = services.sync_engine.seconds_until_due(job)
    return Answer(body=json_shapes.job(job), headers={"retry-after": f"{ceil(wait)}"} if wait else {})


def _person(request: Request) -> Person | None:
    """The person present, if the request comes from this server's own page; None for an app, since whether anybody sits
    before it is unknown (decision 94)."""
    if request.principal.client_id != PAGE:
        return None
    return person_at(request.headers, request.client_address)


def _connections_of(services: Services, caller: Principal, account_ids: set[str]) -> list[StoredConnection]:
    """The connections that bring the named accounts, or all of them if none is named; only those of accounts that the
    caller may read. Unknown ids are ignored; more than 50 raise BadRequest."""
    user_id = caller.user_id
    if len(account_ids) > ACCOUNT_IDS_MAX:
        raise BadRequest("accountIds: at most {limit} ids", limit=ACCOUNT_IDS_MAX)
    if not caller.is_whole:
        covered = {each.id for each in accounts.of_user(services.of(user_id), user_id) if caller.covers(each.id)}
        wanted = sorted(covered & account_ids if account_ids else covered)
        return _own(connections.with_accounts(services.of(user_id), user_id, wanted))
    if not account_ids:
        return _own(connections.of_user(services.of(user_id), user_id))
    return _own(connections.with_accounts(services.of(user_id), user_id, sorted(filter(caller.covers, account_ids))))


def _own(found: list[StoredConnection]) -> list[StoredConnection]:
    """The connections without those that bring what others share, which come by themselves."""
    return [each for each in found if each.connector not in SHARED]


def _seconds_left(services: Services, user_id: str, meant: list[StoredConnection]) -> int:
    at = jobs.next_sync_at(services.of(user_id), user_id, [connection.id for connection in meant])
    left = (at - services.clock.now()) if at else timedelta(0)
    return max(1, ceil(left.total_seconds()))
