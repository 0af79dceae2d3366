"""Commands on CSV profiles: the operator's, and the layouts that a user keeps."""

from pathlib import Path

from msgspec import json

from connectors.bank_csv.profile import layout_id, profile_text
from handlers.commands.control_socket import CommandError, Report
from handlers.work.own_profiles import ChosenLayout
from handlers.work.services import Services
from storage import accounts, kept_layouts
from storage.users import User


def list_profiles(services: Services, report: Report, *, user: User | None = None) -> None:
    """List name and bank of each of the operator's profiles, in the order in which they are tried; with `user`, instead
    id and file of each layout that this user keeps."""
    if user is not None:
        for layout in kept_layouts.of_user(services.everybody, user.id):
            report.line(f"{layout.id}\t{layout.file_name}")
        return
    for profile in services.own_profiles.read():
        report.line(f"{profile.name}\t{profile.bank or ''}")


def print_layouts(services: Services, report: Report, *, user: User) -> None:
    """Print each layout of CSV files that a user keeps as a line of JSON, for a process that reads files by itself."""
    for layout in kept_layouts.of_user(services.everybody, user.id):
        report.line(json.encode(layout).decode())


def add_profile(
    services: Services, report: Report, *, file: str, user: User | None = None, account: str | None = None
) -> None:
    """Check the CSV profile in a file and keep it under the name of the file, for everybody; with `user`, keep it for
    that user's files with the same columns, along with the account of files that do not name theirs. One kept before is
    replaced. The next import uses it, on every machine."""
    path, now = Path(file), services.clock.now()
    if user is not None:
        layout = ChosenLayout(profile_text(path), is_kept=True)
        name, known = (
            layout_id(layout.profiles[0]),
            {each.id for each in kept_layouts.of_user(services.everybody, user.id)},
        )
        account_ids = [accounts.resolve(services.everybody, user.id, account).id] if account is not None else []
        services.everybody.atomically(
            lambda session: layout.keep(session, user.id, file_name=path.name, account_ids=account_ids, now=now)
        )
    else:
        name, known = path.name, services.own_profiles.names()
        services.own_profiles.keep(name, profile_text(path), now=now)
    report.note("Replaced." if name in known else "Added.")


def remove_profile(services: Services, report: Report, *, name: str, user: User | None = None) -> None:
    """Remove a profile by its name, or a user's layout by its id; what was imported with it stays. CommandError for an
    unknown one."""
    if user is not None:
        if not kept_layouts.remove(services.everybody, user.id, name):
            raise CommandError("There is no profile of this id. `bankdata profiles list --user` shows them.")
        report.note("Removed.")
        return
    if f"{name}.json" not in services.own_profiles.names():
        raise CommandError("There is no profile of this name. `bankdata profiles list` shows them.")
    services.own_profiles.remove(f"{name}.json")
    report.note("Removed.")
