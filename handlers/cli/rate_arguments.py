"""Commands for reference rates. They are downloaded by the command itself: the server asks no other machine for
anything."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import click

from handlers.cli.server_or_here import check_store, data_option, group, run, settings_of
from handlers.cli.terminal import Terminal, stop
from handlers.settings import Settings

rates = group("rates", "Reference rates of the European Central Bank, for sums over several currencies.")


@rates.command("update")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="eurofxref-hist.zip or .csv.  [default: fetched from BANKDATA_RATES_URL]",
)
@data_option
def _update(file: Path | None, data_dir: Path | None) -> None:
    """Fetch newer rates from the European Central Bank."""
    if file is not None:
        run("rates update", data_dir, file=file)
        return
    settings = settings_of(data_dir)
    check_store(settings)
    content = _fetch(settings.rates_url)
    with ExitStack() as stack:
        path = _in_data_folder(settings, content, stack)
        run("rates update", data_dir, file=path, origin=settings.rates_url)


def _fetch(address: str) -> bytes:
    from connectors.connector import SourceError
    from connectors.reference.rates_download import download

    terminal = Terminal()
    label = f"Fetching reference rates from {urlsplit(address).hostname}"
    try:
        return download(address, progress=lambda done, total: terminal.progress(label, done, total))
    except SourceError as error:
        stop(str(error))
    finally:
        terminal.end()


def _in_data_folder(settings: Settings, content: bytes, stack: ExitStack) -> Path:
    """The path of a file with this content that lasts as long as `stack` is open. It lies in the data folder, where a
    running server can read it even if it cannot see the folder for temporary files."""
    try:
        path = Path(stack.enter_context(TemporaryDirectory(dir=settings.data_dir, prefix="rates-"))) / "fetched"
        path.write_bytes(content)
    except OSError as error:
        stop(f"The data folder {settings.data_dir} cannot be used: {error.strerror or error}.")
    return path
