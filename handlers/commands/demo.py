"""Fills an empty store for `bankdata demo`: five users, their banks, and a first sync of each."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import uuid5

from auth.scopes import SCOPES
from connectors.sources.demo.households import USERS, DemoUser
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.syncs import first_sync
from handlers.work.services import IS_DEMO, Services
from storage import connections, store_facts, users
from storage.connections import StoredConnection
from storage.importing.matching.booking_keys import NAMESPACE
from storage.users import User

PASSWORDS = {each.name: f"demo-{each.name}-2024" for each in USERS}
"""Everybody knows these passwords, so they are set only in a store that is nothing but a demo."""

MADE = "demo password of {}"
"""The fact that keeps the hash of such a password: to verify all of them took a sixth of a start."""


ABOUT = {
    "demo": "four accounts at two banks",
    "solo": "one account",
    "empty": "no bank connection",
    "lapsed": "no active subscription: the data endpoints answer 403",
    "globe": "four currencies, a loan, an account without balance",
}


def prepare(services: Services, report: Report) -> None:
    """Create the five demo users where they are missing, mark the store as a demo, and sync their demo banks up to
    today; a sync that fails is only noted. Raises CommandError in a store of real users."""
    if store_facts.recall(services.everybody, IS_DEMO) is None:
        if users.everyone(services.everybody):
            raise CommandError(
                f"{services.settings.data_dir} holds real users. Give the demo a folder of its own with --data DIR."
            )
        store_facts.remember(services.everybody, IS_DEMO, "yes")
    todo = [(user, settings) for user in USERS for settings in user.connections]
    for user in USERS:
        _user(services, user)
    for done, (user, settings) in enumerate(todo):
        report.progress("Preparing the demo bank", done, len(todo))
        try:
            _catch_up(services, _connection(services, users.get_by_name(services.everybody, user.name), settings))
        except CommandError as error:  # a bank with a simulated fault: the demo serves all the same, and shows it
            report.note(str(error))
    report.progress("Preparing the demo bank", len(todo), len(todo))


def user_id(name: str) -> str:
    """The id of a demo user, the same in every demo: ids of recurring payments derive from it, and one is an example in
    the contract."""
    return f"u{uuid5(NAMESPACE, f'demo user {name}').hex[:20]}"


def first_job_id(connection_id: str) -> str:
    """The id of a connection's first sync, the same in every demo, so that the examples in the contract exist."""
    return f"syn_{uuid5(NAMESPACE, connection_id).hex}"


def _user(services: Services, user: DemoUser) -> None:
    if users.find_by_name(services.everybody, user.name) is None:
        hashed = services.authorization.passwords.hash(PASSWORDS[user.name])
        store_facts.remember(services.everybody, MADE.format(user.name), hashed)
        users.add(
            services.everybody,
            name=user.name,
            password_hash=hashed,
            has_subscription=user.has_subscription,
            home_currency="EUR",
            now=services.clock.now(),
            user_id=user_id(user.name),
        )


def _connection(services: Services, owner: User, settings: Mapping[str, str]) -> StoredConnection:
    return services.everybody.atomically(
        lambda session: connections.add(
            session,
            user_id=owner.id,
            user_name=owner.name,
            connector="demo",
            bank_name=settings["bank_name"],
            settings=dict(settings),
            now=services.clock.now(),
        )
    )


def _catch_up(services: Services, connection: StoredConnection) -> None:
    """Sync a demo bank's connection, unless it already has everything up to today or may not be synced; raises
    CommandError if the sync fails."""
    if connection.status != "ACTIVE" or (connection.cursor or {}).get("day") == services.clock.today().isoformat():
        return
    job_id = None if connection.cursor else first_job_id(connection.id)
    first_sync(services, _Silent(), connection, job_id)


class _Silent:
    """A report that discards everything."""

    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


def welcome(services: Services, report: Report) -> None:
    """Print the demo's users with their passwords, and a request to paste, with a new token of one hour; called once
    the server answers."""
    settings = services.settings
    owner = users.get_by_name(services.everybody, "demo")
    token = services.authorization.issue_token(owner.id, frozenset(SCOPES), timedelta(hours=1))
    report.line(f"The demo bank is open at {settings.base_url} (documentation: {settings.public_url}/docs).")
    report.line("")
    for user in USERS:
        stored = users.get_by_name(services.everybody, user.name).password_hash
        is_as_made = stored is not None and stored == store_facts.recall(services.everybody, MADE.format(user.name))
        is_right = is_as_made or services.authorization.passwords.is_right(PASSWORDS[user.name], stored)
        password = PASSWORDS[user.name] if is_right else "changed"
        report.line(f"  user {user.name:<7} password {password:<17} {ABOUT[user.name]}")
    report.line("")
    report.line("Read the accounts of the user demo (the token is valid for an hour; `bankdata token` makes others):")
    report.line("")
    report.line(f'  curl -s -H "Authorization: Bearer {token}" {settings.base_url}/accounts')
    report.line("")
    report.note("Stop with Ctrl-C.")
