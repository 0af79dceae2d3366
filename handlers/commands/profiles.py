"""Commands for the profiles that people write for CSV files."""

from pathlib import Path

from connectors.bank_csv.profile import profile_text
from handlers.commands.control_socket import CommandError, Report
from handlers.services import Services


def list_profiles(services: Services, report: Report) -> None:
    """Name and bank of each, in the order in which they are tried."""
    for profile in services.own_profiles.read():
        report.line(f"{profile.name}\t{profile.bank or ''}")


def add_profile(services: Services, report: Report, *, file: str) -> None:
    """Check a profile and keep it under the name of its file; the next import uses it, on every machine."""
    path = Path(file)
    known = services.own_profiles.names()
    services.own_profiles.keep(path.name, profile_text(path), now=services.clock.now())
    report.note("Replaced." if path.name in known else "Added.")


def remove_profile(services: Services, report: Report, *, name: str) -> None:
    """Forget a profile; what was imported by it stays."""
    if f"{name}.json" not in services.own_profiles.names():
        raise CommandError("There is no profile of this name. `bankdata profiles list` shows them.")
    services.own_profiles.remove(f"{name}.json")
    report.note("Removed.")
