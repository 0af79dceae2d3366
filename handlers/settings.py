"""Settings from the environment: each with its unit, its default and its check; a wrong one stops the start."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import time, timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from auth.policy import Registration
from connectors.ways.email import MailServer, mail_sender, mail_server
from handlers import setting_values as read
from handlers.loopback import is_loopback

PREFIX = "BANKDATA_"
IN_CLEAR = "The public address is http: passwords and tokens travel in clear. Put TLS in front and say https."
IN_FILE = "_FILE"  # behind the name of a secret: the file that holds it
LogFormat = Literal["text", "json"]


class SettingError(ValueError):
    """A setting has a value that cannot be used, or a name that does not exist; the message says which, and what is
    expected."""


def _setting(
    default: str | None, parse: Callable[[str], Any], meaning: str, *, unset: Any = None, is_secret: bool = False
) -> Any:
    """A setting with its default as it would be typed, or None where it depends on others or is `unset`; `meaning` is
    what docs/settings.md says of it. A secret may also be given as a file, and is never shown."""
    value = unset if default is None else parse(default)
    about = {"parse": parse, "default": default, "meaning": meaning, "is_secret": is_secret}
    return field(default=value, repr=not is_secret, metadata=about)


def _data_home() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "bankdata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of the service; each name here is that of the environment without prefix, in lower case. The
    table in docs/settings.md is made from them."""

    data_dir: Path = _setting(None, Path, "folder of store, keys and socket (`~/.local/share/bankdata`)")
    database_url: str = _setting(
        None,
        read.database_url,
        "where the store is, if not in that folder; `postgresql://...`",
        unset="",
        is_secret=True,
    )
    database_app_url: str = _setting(
        None,
        read.matching(
            "postgresql://.*", "postgresql://USER@HOST/NAME, the database of BANKDATA_DATABASE_URL for another role"
        ),
        "the same PostgreSQL for the role of the second wall",
        unset="",
        is_secret=True,
    )
    database_pool: int = _setting(
        "10", read.whole_number(1, 1_000), "PostgreSQL connections per process and address, 1 to 1000"
    )
    database_prepare: bool = _setting("on", read.on_or_off, "`off` behind a pooler that pools transactions")
    keys_secret: str = _setting(
        None, read.secrets, "seals the keys in PostgreSQL; 32 characters or more", unset="", is_secret=True
    )
    public_url: str = _setting(
        None, read.own_url, "address of the service for clients; a path is allowed", unset="http://127.0.0.1:8000"
    )
    auth_url: str = _setting(None, read.own_url, "address of the OAuth endpoints, if another", unset="")
    billing_url: str = _setting(None, read.url, "where users without a subscription are sent", unset="")
    time_zone: ZoneInfo = _setting("Europe/Berlin", read.zone, "zone whose day is today")
    home_currency: str = _setting("EUR", read.currency, "currency of a new user's figures")
    rate_limit: tuple[int, int] | None = _setting(
        "60/60s", read.rate_limit, "requests per seconds of one address, or `off`"
    )
    rate_limit_url: str = _setting(
        "memory://",
        read.matching("memory://|rediss?://.*", "memory:// or redis://HOST:PORT"),
        "where requests are counted; Redis for several servers",
        is_secret=True,
    )
    sync_cooldown_seconds: timedelta = _setting(
        "1800", read.seconds(0, 86_400), "seconds between syncs of a connection, 0 to 86400"
    )
    schedule: tuple[time, ...] = _setting("06:30,18:30", read.times, "times at which banks are synced, or `off`")
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = _setting(
        None, read.networks, "networks whose `X-Forwarded-For` is believed", unset=()
    )
    registration: Registration = _setting(
        "open", read.one_of("open", "token", "off"), "who may register apps: `open`, `token`, `off`"
    )
    registration_limit: tuple[int, timedelta] = _setting(
        "20/hour", read.registration_limit, "new apps per address that nobody has allowed"
    )
    refresh_reuse_seconds: timedelta = _setting(
        "60", read.seconds(0, 60), "seconds in which a used refresh token is answered again, 0 to 60"
    )
    writing_clients: frozenset[str] = _setting(
        None, read.client_ids, "ids of apps that may get `write:` scopes", unset=frozenset()
    )
    client_documents: frozenset[str] | None = _setting(
        "off", read.hosts, "apps by metadata document: `on`, `off`, hosts"
    )
    rates_url: str = _setting(
        "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip", read.rates_url, "reference rates"
    )
    connection_keys: Path = _setting(None, Path, "file of the keys that encrypt bank access")
    simplefin_url: str = _setting(
        "https://bridge.simplefin.org", read.provider_url, "the SimpleFIN server that is asked"
    )
    finapi_url: str = _setting("https://live.finapi.io", read.provider_url, "finAPI Access")
    finapi_webform_url: str = _setting("https://webform.finapi.io", read.provider_url, "finAPI's Web Form")
    finapi_client: str = _setting(None, read.word, "id of your client at finAPI", unset="")
    finapi_secret_file: Path | None = _setting(None, Path, "file with the secret of that client")
    fints_product: str = _setting(None, read.word, "your product id for FinTS", unset="")
    fints_banks: tuple[tuple[str, str], ...] = _setting(
        None, read.banks, "FinTS banks on the account page, `CODE=ADDRESS,...`", unset=()
    )
    enable_banking_url: str = _setting("https://api.enablebanking.com", read.provider_url, "Enable Banking")
    enable_banking_application: str = _setting(None, read.word, "id of your application at Enable Banking", unset="")
    enable_banking_key_file: Path | None = _setting(None, Path, "file with its private key, PEM")
    oidc_issuer: str = _setting(None, read.provider_url, "issuer of your OpenID Connect provider", unset="")
    oidc_client_id: str = _setting(None, read.word, "id of this service there", unset="")
    oidc_client_secret: str = _setting(None, read.word, "its secret there, if any", unset="", is_secret=True)
    oidc_name: str = _setting(None, read.label, "its name on the button", unset="")
    oidc_ca_file: Path | None = _setting(None, Path, "authority of its certificate, PEM")
    oidc_groups: tuple[str, frozenset[str]] | None = _setting(None, read.claim, "who may enter, `groups=family,...`")
    oidc_new_people: bool = _setting("off", read.on_or_off, "`on`: whoever may enter becomes a user")
    oidc_only: bool = _setting("off", read.on_or_off, "`on`: nobody signs in otherwise")
    events_heartbeat_seconds: timedelta = _setting(
        "15", read.seconds(1, 3_600), "seconds between signs of life of a stream"
    )
    webhooks_allow: tuple[IPv4Network | IPv6Network, ...] = _setting(
        None, read.networks, "private networks in which webhooks may be", unset=()
    )
    webhooks_retry_seconds: tuple[timedelta, ...] = _setting(  # as Standard Webhooks proposes
        "5,300,1800,7200,18000,36000,50400,72000,86400", read.pauses, "pauses in seconds, at most 20"
    )
    webhooks_timeout_seconds: timedelta = _setting("15", read.seconds(1, 120), "seconds for a receiver to answer")
    smtp_url: MailServer | None = _setting(
        None, mail_server, "mail server, `smtps://USER:PASSWORD@HOST`", is_secret=True
    )
    smtp_from: str = _setting(None, mail_sender, "sender of mail", unset="")
    notice_targets: tuple[str, ...] = _setting(
        "ntfys,gotifys,tgram,matrixs,signals,pover,hassios,discord,slack,nctalks",
        read.notice_schemes,
        "by Apprise",
    )
    notice_allow: tuple[IPv4Network | IPv6Network, ...] = _setting(
        None, read.networks, "private networks in which these may be, also without TLS", unset=()
    )
    cache_mb: int = _setting(
        "256", read.whole_number(0, 1_000_000), "MB for what users asked for lately; 0 keeps nothing"
    )
    log_level: str = _setting(
        "info", read.one_of("debug", "info", "warning", "error"), "`debug`, `info`, `warning`, `error`"
    )
    log_format: LogFormat = _setting("text", read.one_of("text", "json"), "`text` for people, `json` for programs")
    metrics_for: tuple[IPv4Network | IPv6Network, ...] = _setting(
        "127.0.0.0/8,::1", read.networks_or_off, "networks that may read `/metrics`, or `off`"
    )
    simplefin_server: bool = _setting("on", read.on_or_off, "`off`: no apps by SimpleFIN")
    log_addresses: bool = _setting("off", read.on_or_off, "`on`: sign-ins are logged with network addresses")

    @property
    def store_path(self) -> Path | None:
        """The path of the DuckDB file; None where the store is a PostgreSQL database."""
        path = self.database_url.removeprefix("duckdb:///")
        return None if path == self.database_url else Path(path)

    @property
    def store_name(self) -> str:
        """How to name the store to people: the path of its file, or the address of its database without user and
        password."""
        if self.store_path is not None:
            return str(self.store_path)
        parts = urlsplit(self.database_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def is_in_clear(self) -> bool:
        """Whether passwords and tokens cross a network without TLS: whether an address of the service is http and not
        this machine's own."""
        parts = [urlsplit(address) for address in (self.public_url, self.auth_url)]
        return any(part.scheme == "http" and not is_loopback(part.hostname or "") for part in parts)

    @property
    def base_url(self) -> str:
        """The address of the data interface; it is also the audience of access tokens."""
        return f"{self.public_url}/api/v1"


def load(
    environment: Mapping[str, str], *, data_dir: Path | None = None, address: str = "http://127.0.0.1:8000"
) -> Settings:
    """The settings read from an environment. `data_dir` comes from the command line and wins over the environment;
    `address` is where the server listens, which is its public address unless the environment says otherwise.

    Raises SettingError with one sentence, also for a BANKDATA_ name that does not exist: a typing error must not
    silently leave a default in place.
    """
    known = {PREFIX + item.name.upper(): item for item in fields(Settings)}
    in_files = {name + IN_FILE for name, item in known.items() if item.metadata["is_secret"]}
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known.keys() | in_files)
    if unknown:
        raise SettingError(f"{unknown[0]}: there is no such setting. docs/settings.md lists all of them.")
    values: dict[str, Any] = {}
    for name, item in known.items():
        is_secret = item.metadata["is_secret"]
        text = (_secret_value(environment, name) if is_secret else environment.get(name, "")).strip()
        if text:
            try:
                values[item.name] = item.metadata["parse"](text)
            except ValueError as error:
                shown = "the value" if is_secret else repr(text)
                raise SettingError(f"{name}: {shown} cannot be used, expected {error}.") from error
    data_dir = (data_dir or values.get("data_dir") or _data_home()).expanduser().absolute()
    values["data_dir"] = data_dir
    values.setdefault("connection_keys", data_dir / "connection-keys.json")
    values.setdefault("database_url", f"duckdb:///{data_dir / 'bankdata.duckdb'}")
    public_url = values.setdefault("public_url", address)
    values.setdefault("auth_url", public_url)
    values.setdefault("billing_url", f"{public_url}/billing")
    _check_provider(values)
    return Settings(**values)


def in_force(environment: Mapping[str, str]) -> list[tuple[str, str, bool]]:
    """Each setting of this environment: its name, its value as it is typed (of a secret, only dots), and whether the
    environment sets it; the others have their defaults."""
    found = []
    for item in fields(Settings):
        name = PREFIX + item.name.upper()
        is_secret = item.metadata["is_secret"]
        text = environment.get(name, "").strip()
        is_set = bool(text or (is_secret and environment.get(name + IN_FILE, "").strip()))
        shown = "•••" if is_secret and is_set else text or item.metadata["default"] or ""
        found.append((name, shown, is_set))
    return found


def _check_provider(values: Mapping[str, Any]) -> None:
    """Raise SettingError where the settings of the household's provider do not belong together: a typing error must not
    leave passwords valid, or let everybody in."""
    named = [item.name for item in fields(Settings) if item.name.startswith("oidc_") and item.name in values]
    for needed in ("oidc_issuer", "oidc_client_id"):
        if named and not values.get(needed):
            raise SettingError(f"{PREFIX}{named[0].upper()}: it needs {PREFIX}{needed.upper()}, too.")


def _secret_value(environment: Mapping[str, str], name: str) -> str:
    """The value of a secret setting: from the environment itself, or from the file that the environment names instead;
    empty if neither is set. Raises SettingError."""
    text, file = environment.get(name, "").strip(), environment.get(name + IN_FILE, "").strip()
    if not file:
        return text
    if text:
        raise SettingError(f"{name} and {name}{IN_FILE} are both set: one of them says it.")
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise SettingError(f"{name}{IN_FILE}: {file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SettingError(f"{name}{IN_FILE}: {file} is not a text in UTF-8.") from error
