"""The running server: the application over one open service, its background worker, and its control socket."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from auth.people.password_hashing import Busy
from auth.principal import Principal
from auth.record import DEEDS, AccessRecord
from handlers import logs
from handlers.calendar.endpoint import calendar_api
from handlers.commands import control_socket
from handlers.commands.table import perform
from handlers.loopback import is_loopback
from handlers.mcp.admission import PATH
from handlers.mcp.endpoint import MESSAGE, mcp_api
from handlers.metrics import Figures
from handlers.oauth.endpoints import bearer_check, oauth_api, oauth_shared_paths
from handlers.oauth.rendering import unknown_address
from handlers.oauth.sign_in import page_routes as account_pages
from handlers.oauth.site import Site
from handlers.operations import GIVES_FIGURES, KNOWS_COVERAGE, SHOWS_BOOKINGS, operations
from handlers.operations.events.webhook_delivery import Deliverer
from handlers.operations.notices.sending import NoticeSender
from handlers.page.serving import page_routes
from handlers.simplefin.endpoint import PATH as SIMPLEFIN
from handlers.simplefin.endpoint import simplefin_api
from handlers.web.app import CONTRACT_FILE, Api, create_app
from handlers.web.errors import ChangeWaits, Unavailable
from handlers.web.health_and_metrics import health_and_metrics
from handlers.web.hosts import Hosts
from handlers.web.request import Operation
from handlers.web.request_durations import RequestDurations
from handlers.web.sockets.http_protocol import HttpProtocol
from handlers.web.sockets.listening_socket import CannotListen
from handlers.web.sockets.peers import Peers
from handlers.web.steps.guard import guard, person_in_memory
from handlers.web.steps.rate_limit import CountsUnusable, Limiter, Rate
from handlers.web.steps.turns import Turns
from handlers.work.services import Services
from storage.boundary import begin_thread, is_failure
from storage.database import StoreError, StoreFull, StoreUnavailable, UserBusy

# Together with STOP_WITHIN of the sync engine, a whole shutdown stays below ten seconds
REQUESTS_END_WITHIN = 3  # seconds for requests that still run
COMMANDS_END_WITHIN = 2  # seconds for commands that still run

FAILURES_FROM = 400  # statuses of requests that were refused or failed
WAIT_FOR_BANKS = ("getSyncJob", "sendMessage", "createImport", "getImport")  # may wait for a bank or for an import
# How long an import may hold the interpreter while a request waits; Python's own 0.005 is for programs nobody waits for
SWITCH_SECONDS = 0.0005
# Python's own but for the last: a full collection of all that an import holds finds nothing, and keeps everybody
# waiting for 30 to 90 ms
GC_THRESHOLD = 700, 10, 200

log = logging.getLogger("bankdata")


def application(
    services: Services,
    listener: control_socket.ControlServer | None = None,
    *,
    is_cut_off: threading.Event | None = None,
    listens_at: str = "127.0.0.1",
    validate_responses: bool = False,
) -> ASGIApp:
    """The whole service as one ASGI application. Making it registers the service's own OAuth clients in the store. When
    it ends, it closes `services` and the control socket `listener`, if there is one.

    `listens_at` is the address of the listening socket. `is_cut_off` is set if an import or a source was still at work
    at the end: then the process has to exit at once.
    """
    settings = services.settings
    limiter = Limiter(settings.rate_limit_url, rate=Rate(*settings.rate_limit) if settings.rate_limit else None)
    figures = Figures(services)
    services.authorization.clients.ensure_documentation()
    services.authorization.clients.ensure_page()

    contract, functions, turns = CONTRACT_FILE.read_bytes(), operations(services), Turns(StoreUnavailable)
    app = create_app(
        contract=contract,
        operations=functions,
        turns=turns,
        guard=guard(
            bearer_check(services.authorization),
            public_url=settings.public_url,
            billing_url=settings.billing_url,
            shows_bookings=SHOWS_BOOKINGS,
            knows_coverage=KNOWS_COVERAGE,
            gives_figures=GIVES_FIGURES,
        ),
        public_url=settings.public_url,
        limiter=limiter,
        person_of=partial(person_in_memory, services.authorization.access.principal_in_memory),
        trusted_proxies=[str(network) for network in settings.trusted_proxies],
        hosts=Hosts([settings.public_url, settings.auth_url], is_loopback=is_loopback(listens_at)),
        extra_apis=_further_apis(services, contract, functions, turns, limiter),
        routes=[
            *account_pages(Site(services, limiter=limiter)),
            *page_routes(public_url=settings.public_url, auth_url=settings.auth_url, contract=contract),
            *health_and_metrics(figures.text, is_ready=services.is_ready, metrics_for=settings.metrics_for),
        ],
        shared_paths=(*oauth_shared_paths(services.authorization), PATH, SIMPLEFIN),
        unknown_page=unknown_address(services.authorization.policy),
        unavailable={UserBusy: ChangeWaits, StoreUnavailable: Unavailable, StoreFull: Unavailable, Busy: Unavailable},
        is_failure=is_failure,
        lifespan=partial(
            _serving,
            services=services,
            figures=figures,
            listener=listener,
            is_cut_off=is_cut_off or threading.Event(),
        ),
        validate_responses=validate_responses,
    )
    return RequestDurations(
        app, figures.registry, waiting=WAIT_FOR_BANKS, seen=partial(_record_request, services.authorization.record)
    )


def _further_apis(
    services: Services, contract: bytes, functions: Mapping[str, Operation], turns: Turns, limiter: Limiter
) -> Sequence[Api]:
    of_assistants = bearer_check(services.authorization, "mcp")
    apis = [
        oauth_api(services.authorization, limiter=limiter, is_clock_off=services.clock_watch.is_off),
        mcp_api(services, of_assistants, contract=contract, operations=functions, turns=turns, limiter=limiter),
        calendar_api(services, limiter),
    ]
    if services.settings.simplefin_server:
        apis.append(simplefin_api(services, limiter))
    return apis


@asynccontextmanager
async def _serving(
    _app: Any,
    *,
    services: Services,
    figures: Figures,
    listener: control_socket.ControlServer | None,
    is_cut_off: threading.Event,
) -> AsyncIterator[None]:
    """Around all serving: the threads beside requests begin, and everything is stored and closed at the end."""
    worker = begin_thread("sync worker", services.scheduler.work)
    begin_thread("record", services.authorization.record.keep_writing)
    telling = [begin_thread("notices", NoticeSender(services, operations(services)).work)]
    if services.sends_webhooks:
        telling.append(begin_thread("webhooks", Deliverer(services).work))
    for name, work in services.sharing.background(services.sync_engine):
        begin_thread(name, work)
    try:
        async with figures.watching():
            yield
    finally:
        services.sync_engine.stop()
        has_ended = listener is None or listener.close(within=COMMANDS_END_WITHIN)
        worker.join(COMMANDS_END_WITHIN)  # the worker may be reading the store
        for each in telling:
            each.join(COMMANDS_END_WITHIN)
        if services.close() and has_ended:
            log.info("stopped; everything is stored")
        else:
            log.warning("stopped; an unfinished import is undone, a sync goes on elsewhere or after the next start")
            is_cut_off.set()


def _record_request(record: AccessRecord, caller: Principal, operation: str, status: int, is_dry_run: bool) -> None:
    """Note a request of an app in the user's access record, one that only asked what would happen as a dry run. Calls
    of an assistant are left to the MCP endpoint, which records the tool that was called."""
    if operation != MESSAGE:
        record.note(
            caller.user_id,
            f"{operation} (dry run)" if is_dry_run and operation in DEEDS else operation,
            grant_id=caller.grant_id or "",
            client_id=caller.client_id,
            is_refused=status >= FAILURES_FROM,
        )


def run(
    services: Services,
    *,
    listener: socket.socket,
    ready: Callable[[], None],
    takes_commands: bool = True,
) -> None:
    """Serve until SIGINT or SIGTERM, in this one process; then return, for being asked to stop is no failure. If an
    import or a source is still at work then, the process exits at once instead, with code 0.

    With `takes_commands`, commands reach the server through a control socket; where several processes serve one store,
    none takes commands. `ready` is called once requests are answered. Raises CannotListen if the control socket cannot
    be made, CountsUnusable, and StoreError.
    """
    commands_from = _control_server(services) if takes_commands else None
    is_cut_off = threading.Event()
    try:
        served = application(
            services,
            commands_from,
            is_cut_off=is_cut_off,
            listens_at=listener.getsockname()[0],
        )
    except (CountsUnusable, StoreError):
        if commands_from is not None:
            commands_from.close(within=0)
        raise
    peers = Peers(services.settings.trusted_proxies)
    # uvicorn's types ask for a class, but it calls any factory
    protocol: Any = partial(HttpProtocol, peers=peers)
    config = uvicorn.Config(
        served,
        workers=1,
        http=protocol,
        ws="none",
        lifespan="on",
        access_log=False,  # request lines hold search texts
        proxy_headers=False,  # uvicorn believes X-Forwarded-For from 127.0.0.1; handlers.web.addresses decides that
        server_header=False,
        timeout_graceful_shutdown=REQUESTS_END_WITHIN,
        log_config=logs.configuration(services.settings.log_level, services.settings.log_format),
    )
    server = _Server(config, ready, peers, stopping=services.sync_engine.stop)
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.excepthook = logs.log_escaped
    stop = {number: signal.signal(number, server.request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        gc.unfreeze()  # else DuckDB's binding takes frozen objects for leaks, and prints a hundred lines about them
        for number, handler in stop.items():
            signal.signal(number, handler)
    if is_cut_off.is_set():
        # A thread that still waits for a source must not run while the interpreter is being taken down
        logging.shutdown()
        os._exit(0)


def _control_server(services: Services) -> control_socket.ControlServer:
    try:
        return control_socket.ControlServer(services.settings.data_dir, lambda *command: perform(services, *command))
    except OSError as error:
        raise CannotListen(
            f"{services.settings.data_dir / control_socket.FILE_NAME} cannot be made, through which commands reach the"
            f" server: {error.strerror or error}."
        ) from error


class _Server(uvicorn.Server):
    """uvicorn, with a callback for when it answers requests, and with signals that request a stop instead of killing
    it."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], peers: Peers, *, stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._peers = peers
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()  # answers the requests that wait for a source, so that the shutdown does not wait for them
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # The program's own objects stay until its end: searching them again and again for garbage
        # stops everybody for a tenth of a second each time.
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        self._closing = asyncio.create_task(self._close_overdue())
        self._ready()

    async def _close_overdue(self) -> None:
        """Close overdue HTTP connections once a second."""
        while True:
            self._peers.close_overdue(asyncio.get_running_loop().time())
            await asyncio.sleep(1)

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal as a request to stop. uvicorn's own handler raises the signal again after the shutdown, which
        would end the process as killed."""
        self.should_exit = True
