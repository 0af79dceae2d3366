"""Commands on access for apps: issue and revoke tokens, clients, grants and keys."""

from datetime import datetime, time, timedelta
from itertools import chain

import orjson

from auth.apps.clients import ClientUnknown
from auth.scopes import ALL_SCOPES
from connectors.ways.web_push import WebPushKey
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.json_shapes import record_entry
from handlers.work.services import Services
from storage import accounts as stored_accounts
from storage import users as stored_users
from storage.bank_access import connection_secrets
from storage.notices import push_key
from storage.notices.ways import targets
from storage.oauth.grants import Terms
from storage.users import User


def print_token(
    services: Services, report: Report, *, user: User, scope: str, seconds: int, for_assistants: bool = False
) -> None:
    """Issue an access token for a user and print it, alone on standard output. It is for the data interface or, with
    `for_assistants`, for the assistants' address. `scope` is separated by spaces; CommandError for an unknown one."""
    scopes = frozenset(scope.split())
    if not scopes or not scopes <= frozenset(ALL_SCOPES):
        raise CommandError(f"--scope accepts one or more of {', '.join(ALL_SCOPES)}, separated by spaces.")
    token = services.authorization.issue_token(
        user.id, scopes, timedelta(seconds=seconds), resource="mcp" if for_assistants else "data"
    )
    report.line(token)


def print_setup_token(
    services: Services, report: Report, *, user: User, app_name: str, accounts: list[str], figures_only: bool, days: int
) -> None:
    """Make a setup token for an app that speaks SimpleFIN and print it, alone on standard output. `accounts` are ids,
    IBANs or names (none: all accounts); the app's access lasts `days`. CommandError where SimpleFIN is off."""
    if not services.settings.simplefin_server:
        raise CommandError("SimpleFIN is not served: BANKDATA_SIMPLEFIN_SERVER is off.")
    named = [stored_accounts.resolve(services.everybody, user.id, each).id for each in accounts]
    terms = Terms(accounts=tuple(sorted(set(named))) if named else None, figures_only=figures_only)
    token = services.authorization.simplefin.setup_token(
        user.id, app_name, terms=terms, lifetime=timedelta(days=days), deed="issueToken"
    )
    report.note("Paste this into the app. It works once, for 24 hours.")
    report.line(token)


def print_calendar_link(services: Services, report: Report, *, user: User) -> None:
    """Make and print a new address of a user's calendar of payments, alone on standard output; the previous one
    ends."""
    address = services.authorization.calendar.make(user.id)
    report.note("Subscribe to this address in a calendar app. It is shown only this once; an earlier one has ended.")
    report.line(address)


def end_calendar_link(services: Services, report: Report, *, user: User) -> None:
    """End the address of a user's calendar; from then on it is answered like one that never existed. CommandError if
    there is none."""
    if not services.authorization.calendar.revoke(user.id):
        raise CommandError(f"{user.name} has no calendar link. `bankdata calendar link` makes one.")
    report.note("Ended.")


def list_clients(services: Services, report: Report) -> None:
    """List the registered OAuth clients, the oldest first, one a line: id, name, who registered it, redirect
    addresses."""
    for client in services.authorization.clients.all():
        report.line(f"{client.id}\t{client.name}\t{client.registered_by}\t{' '.join(client.redirect_uris)}")


def add_client(services: Services, report: Report, *, name: str, redirect_uris: list[str]) -> None:
    """Register a client that the operator vouches for, and print its id."""
    report.line(services.authorization.clients.add(name, tuple(redirect_uris)).id)


def remove_client(services: Services, report: Report, *, client_id: str) -> None:
    """Delete an OAuth client and end its grants; CommandError for an unknown id."""
    try:
        ended = services.authorization.clients.remove(client_id)
    except ClientUnknown as error:
        raise CommandError("There is no client with this id. `bankdata clients list` shows them.") from error
    report.note(f"Removed the client and ended {quantity(ended, 'grant')}.")


def list_grants(services: Services, report: Report, *, user: User | None) -> None:
    """List the live grants that apps use, the newest first, one a line: id, user, app, scope. `user` None: those of all
    users."""
    wanted = user.id if user else None
    for each in services.authorization.grants.connected_apps(wanted):
        report.line(f"{each.grant.id}\t{each.user_name}\t{each.client_name}\t{each.grant.scope}")


def revoke_grant(services: Services, report: Report, *, grant_id: str) -> None:
    """Revoke a grant: its tokens are refused from the next request on, by other processes within
    OTHER_PROCESSES_SEEN_WITHIN. Raises CommandError if it does not exist or was revoked before, not if it expired."""
    if not services.authorization.grants.revoke(grant_id, because="revoked by the operator"):
        raise CommandError("There is no active grant with this id. `bankdata grants list` shows them.")
    report.note("Revoked.")


def show_record(services: Services, report: Report, *, user: User, since: str | None, as_json: bool) -> None:
    """Print a user's access record by hour, the latest hour first, in UTC, one line (of JSON, if `as_json`) for each
    operation; `since` is the first day, in the service's time zone, None for all."""
    first = datetime.combine(datetime.fromisoformat(since), time(), services.settings.time_zone) if since else None
    for entry in chain.from_iterable(services.authorization.record.hours(user.id, since=first)):
        if as_json:
            report.line(orjson.dumps(record_entry(entry)).decode())
            continue
        cells = (
            f"{entry.hour:%Y-%m-%d %H:%M}",
            entry.client_name or entry.client_id or user.name,
            entry.operation,
            f"{entry.calls} times" if entry.calls != 1 else "once",
            f"{entry.refusals} refused",
        )
        report.line("\t".join(cells))


def rotate_keys(services: Services, report: Report, *, of_connections: bool = False) -> None:
    """Make a new signing key and print its id; tokens signed by the old one stay valid for their hour. With
    `of_connections`, make instead a new key for the secrets that open banks, and encrypt all of them anew at once."""
    if of_connections:
        count = connection_secrets.rotate(services.everybody, services.connection_keys)
        report.line(f"Encrypted {quantity(count, 'secret')} anew.")
        return
    report.line(services.authorization.rotate_keys())


def reseal_keys(services: Services, report: Report) -> None:
    """Encrypt the keys in the store with the first secret of BANKDATA_KEYS_SECRET; CommandError where they are in a
    file."""
    path = services.authorization.keys.path
    if path is not None:
        raise CommandError(f"{path} is sealed by no secret: BANKDATA_KEYS_SECRET is about PostgreSQL.")
    services.authorization.reseal_keys()
    services.connection_keys.reseal()
    report.note("Sealed the keys with the first line of BANKDATA_KEYS_SECRET. The others can go.")


def print_registration_token(services: Services, report: Report) -> None:
    """Print the initial access token that client registration requires under BANKDATA_REGISTRATION=token."""
    report.line(services.authorization.clients.initial_token())


def renew_push_key(services: Services, report: Report) -> None:
    """Take another key towards push services, and pause the browsers that subscribed to the former one."""
    push_key.renew(services.everybody, services.connection_keys, WebPushKey.new())
    count = 0
    for user in stored_users.everyone(services.everybody):
        own = services.of(user.id)
        for each in targets.of_user(own, user.id, state="working"):
            if each.way == "push":
                targets.pause(own, user.id, each.id, because="not_allowed")
                count += 1
    report.note(f"Paused {quantity(count, 'browser')}: each subscribes again when its person opens the page there.")
