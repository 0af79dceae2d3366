"""The command that installs newer reference rates for sums over several currencies."""

from pathlib import Path

from connectors.connector import SourceError
from connectors.reference.exchange_rates import update_rates
from handlers.commands.control_socket import CommandError, Report
from handlers.services import Services


def update(services: Services, report: Report, *, file: str, origin: str | None = None) -> None:
    """Install newer reference rates of the European Central Bank from a file; `origin` is the address it was downloaded
    from."""
    try:
        services.sharing.fetch_rates()
        rates = update_rates(Path(file), folder=services.settings.data_dir)
    except SourceError as error:
        raise CommandError(f"{origin or file}: {error}") from error
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}.") from error
    services.forget_rates()
    services.sharing.share_rates()
    report.line(f"Reference rates up to {rates['day'].max()!s}.")
