"""The sources that bank data come from, made from the settings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from analytics.records import Record
from connectors.bank_csv.layouts import CsvLayout, check_layouts, guesses_in_words
from connectors.bank_csv.profile import Profile
from connectors.connecting import LiveSource
from connectors.connector import Connector, Misconfigured
from connectors.reference.bank_names import with_bank_names
from connectors.sources.demo.connector import DemoBank
from connectors.sources.demo.live import LiveDemoBank
from connectors.sources.enable_banking.connector import EnableBanking
from connectors.sources.finapi.connector import FinApi
from connectors.sources.fints.connector import FinTs
from connectors.sources.folder import Folder
from connectors.sources.household import BANKS, FILES, Household
from connectors.sources.simplefin import SimpleFin
from connectors.sources.uploads import Uploads
from connectors.statements import read_records
from handlers.settings import Settings


def live_sources(settings: Settings) -> Mapping[str, LiveSource]:
    """The sources on other machines that a person can connect with a sign-in or a token, by name; also those that the
    settings do not set up (`is_set_up`)."""
    enable_banking = EnableBanking(
        settings.enable_banking_url,
        application=settings.enable_banking_application,
        key_file=settings.enable_banking_key_file,
    )
    finapi = FinApi(
        settings.finapi_url,
        settings.finapi_webform_url,
        settings.finapi_client,
        lambda: content_of("BANKDATA_FINAPI_SECRET_FILE", settings.finapi_secret_file),
    )
    fints = FinTs(
        settings.fints_product, lambda document: with_bank_names(read_records(document)), dict(settings.fints_banks)
    )
    return {each.name: each for each in (SimpleFin(settings.simplefin_url), enable_banking, fints, finapi)}


def content_of(setting: str, file: Path | None) -> str:
    """The content of a file that the operator named in a setting, such as a client's secret, trimmed; raises
    Misconfigured if none is named, and for a file that is missing, unreadable or empty."""
    try:
        text = file.read_text("utf-8").strip() if file is not None else ""
    except (OSError, ValueError) as error:
        raise Misconfigured(
            "The file that {setting} names cannot be read.", setting=setting, detail=type(error).__name__
        ) from error
    if not text:
        raise Misconfigured("{setting} has to name a file.", setting=setting)
    return text


def connectors(profiles: Callable[[str], Sequence[Profile]]) -> Mapping[str, Connector]:
    """The connectors that ask no other machine (demo banks, folders, uploads), by name; `profiles` gives the CSV
    profiles for a user id."""

    def read_file(file: BinaryIO, user_id: str, warn: Callable[[str], None]) -> Iterator[Record]:
        layouts: list[CsvLayout] = []
        yield from with_bank_names(read_records(file, profiles(user_id), layouts.append))
        check_layouts(layouts)
        for each in guesses_in_words(layouts):
            warn(each)

    folder = Folder(read_file)
    shared = (Household(name) for name in (BANKS, FILES))
    return {each.name: each for each in (DemoBank(), LiveDemoBank(), folder, Uploads(), *shared)}
