"""Settings: every wrong value stops every command with one line that names the setting; so does a name nobody knows."""

from collections.abc import Callable
from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from handlers.settings import SettingError, Settings, load
from tests.cli.conftest import bankdata
from tests.service.conftest import free_port

WRONG = [
    ("DATABASE_URL", "mysql://db/bank", "postgresql://USER@HOST/NAME"),
    ("DATABASE_APP_URL", "bank_app", "postgresql://USER@HOST/NAME, the database of BANKDATA_DATABASE_URL for another"),
    ("DATABASE_POOL", "0", "a whole number from 1 to 1000"),
    ("DATABASE_PREPARE", "no", "on or off"),
    ("DATABASE_URL", "duckdb:///", "duckdb:///PATH"),
    ("DATABASE_URL", "/tmp/x.duckdb", "duckdb:///PATH"),
    ("DATABASE_URL", "duckdb:///relative.duckdb", "an absolute path"),
    ("DATABASE_URL", "duckdb:////tmp/", "an absolute path"),
    ("KEYS_SECRET", "too short for a secret", "the value cannot be used, expected 32 characters or more"),
    ("PUBLIC_URL", "bank.example.org", "absolute http or https address"),
    ("PUBLIC_URL", "ftp://bank.example.org", "absolute http or https address"),
    ("PUBLIC_URL", "https://bänk.example.org", "absolute http or https address"),
    ("PUBLIC_URL", "https://", "absolute http or https address"),
    ("PUBLIC_URL", "https://user@bank.example.org", "absolute http or https address"),
    ("AUTH_URL", "https://bank.example.org/#x", "absolute http or https address"),
    ("AUTH_URL", "https://bank.example.org/?a=b", "absolute http or https address"),
    ("BILLING_URL", "/plans", "absolute http or https address"),
    ("TIME_ZONE", "Mars/Olympus", "a time zone name"),
    ("TIME_ZONE", "../../etc/passwd", "a time zone name"),
    ("HOME_CURRENCY", "eur", "three capital letters"),
    ("RATE_LIMIT", "60", "60/60s, or off"),
    ("RATE_LIMIT", "0/60s", "60/60s, or off"),
    ("RATE_LIMIT", "60/0s", "60/60s, or off"),
    ("RATE_LIMIT_URL", "localhost:6379", "memory:// or redis://"),
    ("SIMPLEFIN_URL", "http://bridge.example.org", "an https address"),
    ("FINAPI_URL", "https://live.example.org/?a=b", "an https address"),
    ("ENABLE_BANKING_URL", "ftp://api.example.org", "an https address"),
    ("FINAPI_WEBFORM_URL", "webform.example.org", "an https address"),
    ("FINAPI_CLIENT", "two words", "an id without blanks"),
    ("ENABLE_BANKING_APPLICATION", "two words", "an id without blanks"),
    ("FINTS_PRODUCT", "two words", "an id without blanks"),
    ("FINTS_BANKS", "1234567=https://fints.bank.example", "bank codes with https addresses, such as 12345678=https://"),
    ("FINTS_BANKS", "12345678=http://fints.bank.example", "bank codes with https addresses"),
    ("FINTS_BANKS", "12345678=https://fints.bank.example,", "bank codes with https addresses"),
    ("OIDC_ISSUER", "http://id.example.org", "an https address"),
    ("OIDC_CLIENT_ID", "bankdata", "it needs BANKDATA_OIDC_ISSUER, too"),
    ("OIDC_ONLY", "on", "it needs BANKDATA_OIDC_ISSUER, too"),
    ("OIDC_GROUPS", "family", "the name of a claim and its values, such as groups=family,friends"),
    ("OIDC_GROUPS", "groups=", "the name of a claim"),
    ("OIDC_NEW_PEOPLE", "yes", "on or off"),
    ("OIDC_CLIENT_SECRET", "two words", "the value cannot be used"),
    ("OIDC_NAME", "x" * 41, "up to 40 letters"),
    ("SCHEDULE", "6:30", "times of the day such as 06:30,18:30, or off"),
    ("SIMPLEFIN_SERVER", "no", "on or off"),
    ("SCHEDULE", "06:30,24:00", "times of the day"),
    ("SYNC_COOLDOWN_SECONDS", "-1", "a whole number from 0 to 86400"),
    ("SYNC_COOLDOWN_SECONDS", "86401", "a whole number from 0 to 86400"),
    ("SYNC_COOLDOWN_SECONDS", "30m", "a whole number from 0 to 86400"),
    ("EVENTS_HEARTBEAT_SECONDS", "0", "a whole number from 1 to 3600"),
    ("WEBHOOKS_ALLOW", "localhost", "addresses or networks separated by commas, such as 10.0.0.0/8,::1"),
    ("SMTP_URL", "mail.example.org", "the value cannot be used"),
    ("SMTP_FROM", "bank", "an address such as bank@example.org"),
    ("NOTICE_TARGETS", "ntfys,dbus", "names such as ntfys,gotifys, none that write to this machine, or off"),
    ("NOTICE_TARGETS", "ntfys://", "names such as ntfys,gotifys"),
    ("NOTICE_ALLOW", "localhost", "addresses or networks separated by commas, such as 10.0.0.0/8,::1"),
    ("WEBHOOKS_RETRY_SECONDS", "5,soon", "up to 20 whole numbers of seconds separated by commas, such as 5,300,1800"),
    ("WEBHOOKS_RETRY_SECONDS", ",".join(["1"] * 21), "up to 20 whole numbers"),
    ("WEBHOOKS_TIMEOUT_SECONDS", "121", "a whole number from 1 to 120"),
    ("TRUSTED_PROXIES", "all", "addresses or networks"),
    ("TRUSTED_PROXIES", "10.0.0.0/33", "addresses or networks"),
    ("REGISTRATION", "closed", "one of open, token, off"),
    ("REGISTRATION_LIMIT", "20", "20/hour"),
    ("CLIENT_DOCUMENTS", "https://claude.ai", "names of hosts"),
    ("REFRESH_REUSE_SECONDS", "61", "a whole number from 0 to 60"),
    ("RATES_URL", "http://www.ecb.europa.eu/eurofxref-hist.zip", "an https address"),
    ("RATES_URL", "https://", "an https address"),
    ("RATES_URL", "eurofxref-hist.zip", "an https address"),
    ("WRITING_CLIENTS", "Budget", "ids as `bankdata clients list` shows them"),
    ("WRITING_CLIENTS", "q3Zk9w1hV2mY7c5B,", "separated by commas"),
    ("CACHE_MB", "-1", "a whole number from 0 to 1000000"),
    ("LOG_LEVEL", "INFO", "one of debug, info, warning, error"),
    ("LOG_FORMAT", "xml", "one of text, json"),
    ("METRICS_FOR", "all", "addresses or networks separated by commas, such as 10.0.0.0/8,::1, or off"),
    ("LOG_ADDRESSES", "yes", "expected on or off"),
]

PROVIDER = {"OIDC_ISSUER": "https://id.example.org/home/", "OIDC_CLIENT_ID": "bankdata"}
"""Without which the other settings of the provider are refused."""

RIGHT = [
    ("DATABASE_URL", "duckdb:////tmp/x.duckdb"),
    ("DATABASE_URL", "postgresql://bank@db.example:5432/bank"),
    ("DATABASE_APP_URL", "postgresql://bank_app@db.example:5432/bank"),
    ("DATABASE_POOL", "20"),
    ("DATABASE_PREPARE", "off"),
    ("KEYS_SECRET", "q2Zr5uJ0sVb8xWm1tYc4dLf7hNk3pGa6"),
    ("PUBLIC_URL", "https://bank.example.org/path/"),
    ("AUTH_URL", "https://bank.example.org/auth"),
    ("BILLING_URL", "https://example.org/plans"),
    ("TIME_ZONE", "Europe/Vienna"),
    ("HOME_CURRENCY", "CHF"),
    ("RATE_LIMIT", "1/1s"),
    ("RATE_LIMIT", "off"),
    ("RATE_LIMIT_URL", "redis://127.0.0.1:6379"),
    ("CONNECTION_KEYS", "/etc/bankdata/connection-keys.json"),
    ("SIMPLEFIN_URL", "https://bridge.example.org"),
    ("ENABLE_BANKING_URL", "http://127.0.0.1:8000"),
    ("ENABLE_BANKING_APPLICATION", "cf589be3-3755-465b-a8df-a90a16a31403"),
    ("ENABLE_BANKING_KEY_FILE", "/etc/bankdata/enable-banking.pem"),
    ("FINAPI_URL", "https://sandbox.finapi.io"),
    ("FINAPI_WEBFORM_URL", "https://webform-sandbox.finapi.io"),
    ("FINAPI_CLIENT", "cf589be3-3755-465b-a8df-a90a16a31403"),
    ("FINAPI_SECRET_FILE", "/etc/bankdata/finapi-secret"),
    ("FINTS_PRODUCT", "9FA6681DEC0CF3046BFC2F8A6"),
    ("FINTS_BANKS", "12345678=https://fints.bank.example/pintan, 87654321=https://bank.example/hbci?v=3"),
    *PROVIDER.items(),
    ("OIDC_CLIENT_SECRET", "s3cret-of-the-client"),
    ("OIDC_NAME", "Authelia"),
    ("OIDC_CA_FILE", "/etc/bankdata/ca.pem"),
    ("OIDC_GROUPS", "groups=family, friends"),
    ("OIDC_NEW_PEOPLE", "on"),
    ("OIDC_ONLY", "on"),
    ("SIMPLEFIN_SERVER", "off"),
    ("SCHEDULE", "off"),
    ("SCHEDULE", "18:30, 06:30"),
    ("SYNC_COOLDOWN_SECONDS", "0"),
    ("SYNC_COOLDOWN_SECONDS", "86400"),
    ("EVENTS_HEARTBEAT_SECONDS", "3600"),
    ("WEBHOOKS_ALLOW", "10.0.0.0/8,::1"),
    ("SMTP_URL", "smtps://bank:secret@mail.example.org"),
    ("SMTP_FROM", "Our bank <bank@example.org>"),
    ("NOTICE_TARGETS", "off"),
    ("NOTICE_TARGETS", "ntfys, mailtos"),
    ("NOTICE_ALLOW", "192.168.0.0/16"),
    ("WEBHOOKS_RETRY_SECONDS", ",".join(["1"] * 20)),
    ("WEBHOOKS_TIMEOUT_SECONDS", "120"),
    ("TRUSTED_PROXIES", "10.0.0.0/8,::1"),
    ("REGISTRATION", "token"),
    ("REGISTRATION_LIMIT", "5/day"),
    ("CLIENT_DOCUMENTS", "claude.ai,vscode.dev"),
    ("REFRESH_REUSE_SECONDS", "60"),
    ("RATES_URL", "https://mirror.example.org:8443/rates?kind=hist"),
    ("RATES_URL", "http://127.0.0.1:8000/rates.zip"),
    ("WRITING_CLIENTS", "q3Zk9w1hV2mY7c5B, -3Zk9w1hV2mY7c5_"),
    ("CACHE_MB", "0"),
    ("LOG_LEVEL", "debug"),
    ("LOG_FORMAT", "json"),
    ("METRICS_FOR", "10.0.0.0/8"),
    ("METRICS_FOR", "off"),
    ("LOG_ADDRESSES", "on"),
    ("DATA_DIR", "/tmp/x"),
]


@pytest.mark.requirement("settings.refused")
@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_wrong_value_is_one_line_that_names_the_setting(tmp_path: Path, name: str, value: str, expected: str) -> None:
    done = bankdata("users", "list", "--data", tmp_path / "data", settings={name: value})
    assert done.failed_with(f"BANKDATA_{name}: ")
    assert expected in done.err
    assert not (tmp_path / "data").exists()


@pytest.mark.requirement("settings.refused")
@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_values_at_the_bounds_are_taken(name: str, value: str) -> None:
    set_too = PROVIDER if name.startswith("OIDC_") else {}
    load({f"BANKDATA_{each}": text for each, text in {**set_too, name: value}.items()})


@pytest.mark.requirement("settings.refused")
def test_a_store_of_the_rate_limit_that_cannot_be_used_is_one_line_and_leaves_no_socket(
    copied: Callable[[], Path],
) -> None:
    folder = copied()
    wrong = {"RATE_LIMIT_URL": "redis://127.0.0.1:notaport"}
    done = bankdata("demo", "--port", free_port(), "--data", folder, settings=wrong)
    assert done.failed_with("BANKDATA_RATE_LIMIT_URL: the store of the rate limit cannot be used: ")
    assert not (folder / "control.sock").exists()


def test_every_setting_is_among_these_examples() -> None:
    names = {each.name.upper() for each in fields(Settings)}
    assert {name for name, _ in RIGHT} == names
    assert {name for name, *_ in WRONG} == names - {
        "DATA_DIR",
        "CONNECTION_KEYS",
        "ENABLE_BANKING_KEY_FILE",
        "OIDC_CA_FILE",
        "FINAPI_SECRET_FILE",
    }


@pytest.mark.requirement("settings.unknown")
def test_a_setting_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    done = bankdata("users", "list", "--data", tmp_path, settings={"RATELIMIT": "off"})
    assert done.failed_with("BANKDATA_RATELIMIT: there is no such setting. docs/settings.md lists all of them.")


@pytest.mark.requirement("settings.defaults")
def test_an_empty_value_is_the_default_and_the_option_wins_over_the_environment(tmp_path: Path) -> None:
    assert load({"BANKDATA_TIME_ZONE": " "}).time_zone.key == "Europe/Berlin"
    chosen = load({"BANKDATA_DATA_DIR": "/tmp/a"}, data_dir=tmp_path)
    assert chosen.data_dir == tmp_path
    assert chosen.store_path == tmp_path / "bankdata.duckdb"
    assert (chosen.billing_url, chosen.base_url) == ("http://127.0.0.1:8000/billing", "http://127.0.0.1:8000/api/v1")
    with pytest.raises(SettingError):
        load({"BANKDATA_": "x"})


@pytest.mark.requirement("decision 10")
def test_today_is_the_day_of_the_configured_zone(tmp_path: Path) -> None:
    """Kiritimati and Niue lie 25 hours apart: they never have the same date."""
    tmp_path.chmod(0o700)
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    days = []
    for zone in ("Pacific/Niue", "Pacific/Kiritimati"):
        line = bankdata("check", "--data", tmp_path, settings={"TIME_ZONE": zone}).lines[0]
        days.append(date.fromisoformat(line.rpartition("today is ")[2]))
    assert days[0] < days[1]


@pytest.mark.requirement("store.unusable-folder")
def test_a_data_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = bankdata("users", "add", "eva", "--random", "--data", tmp_path / "file" / "data")
    assert done.failed_with("cannot be used")
    usage = bankdata("users", "list", "--data", tmp_path / "file")
    assert usage.code == 2
    assert "is a file" in usage.err


@pytest.mark.requirement("store.unreadable")
def test_a_damaged_store_is_one_line_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "bankdata.duckdb").write_bytes(b"not a store" * 999)
    done = bankdata("check", "--data", tmp_path)
    assert done.failed_with("cannot be read as a store")
    assert (tmp_path / "bankdata.duckdb").read_bytes() == b"not a store" * 999


@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("content", ["", "{", "[]", '{"keys": 1}'])
def test_damaged_keys_are_one_line_and_stay_as_they_are(tmp_path: Path, content: str) -> None:
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    keys = tmp_path / "oauth-keys.json"
    keys.write_text(content)
    done = bankdata("users", "list", "--data", tmp_path)
    assert done.failed_with("oauth-keys.json")
    assert keys.read_text() == content


@pytest.mark.requirement("store.private")
def test_nothing_in_the_data_folder_is_for_others_whatever_the_folders_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    assert bankdata("connect", "demo", "--user", "eva", "--accounts", "1", "--data", tmp_path).code == 0
    assert bankdata("backup", "--data", tmp_path).code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert [path for path in files if path.stat().st_mode & 0o077] == []
    check = bankdata("check", "--data", tmp_path)
    assert (check.code, check.err) == (1, "Error: 1 problem found.\n")
    assert f"chmod 700 {tmp_path}" in check.out


@pytest.mark.requirement("backup")
def test_a_backup_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    (tmp_path / "backups").write_text("")
    assert bankdata("backup", "--data", tmp_path).failed_with("The backup could not be written to")


@pytest.mark.requirement("serve.port")
def test_a_control_socket_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "control.sock").mkdir()
    done = bankdata("serve", "--data", tmp_path, "--port", free_port())
    assert done.failed_with("control.sock cannot be made, through which commands reach the server: Is a directory.")


@pytest.mark.requirement("backup")
def test_a_store_outside_the_data_folder_is_used_and_backed_up_into_it(tmp_path: Path) -> None:
    settings = {"DATABASE_URL": f"duckdb:///{tmp_path / 'elsewhere' / 'b.duckdb'}"}
    data = tmp_path / "data"
    assert bankdata("users", "add", "eva", "--random", "--data", data, settings=settings).code == 0
    done = bankdata("backup", "--data", data, settings=settings)
    assert done.code == 0, done.err
    (folder,) = (data / "backups").iterdir()
    assert done.lines == [str(folder)]
    assert {path.name for path in folder.iterdir()} == {"bankdata.duckdb", "bankdata.duckdb.wal", "oauth-keys.json"}
    assert not (data / "bankdata.duckdb").exists()
    restored = bankdata("users", "list", "--data", folder)
    assert restored.lines == ["eva\tactive subscription\t0 bank connections"]


@pytest.mark.requirement("workers.refused")
@pytest.mark.long
def test_several_processes_are_refused_where_they_could_not_work_together(tmp_path: Path) -> None:
    many = ("serve", "--data", tmp_path, "--port", free_port(), "--workers", "2")
    assert bankdata(*many).failed_with(f"One process serves a DuckDB store, and {tmp_path / 'bankdata.duckdb'} is one.")
    shared = {"DATABASE_URL": "postgresql://bank@127.0.0.1:1/bank", "RATE_LIMIT": "60/60s"}
    assert bankdata(*many, settings=shared).failed_with("Several processes have to count requests together")
    shared["RATE_LIMIT"] = "off"
    assert bankdata(*many, settings=shared).failed_with("The database at postgresql://127.0.0.1:1/bank cannot be used")


@pytest.mark.requirement("settings.secret_files")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("database_url", "postgresql://bank:secret@db.example/bank"),
        ("database_app_url", "postgresql://app:secret@db.example/bank"),
        ("keys_secret", "q2Zr5uJ0sVb8xWm1tYc4dLf7hNk3pGa6"),
        ("rate_limit_url", "redis://:secret@redis.example:6379"),
    ],
)
def test_what_opens_something_may_be_given_as_a_file_and_is_never_shown(
    tmp_path: Path, name: str, content: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{content}\n")
    settings = load({f"BANKDATA_{name.upper()}_FILE": str(file)})
    assert getattr(settings, name) == content
    assert content not in repr(settings)


@pytest.mark.requirement("settings.secret_files")
def test_a_file_that_cannot_be_read_and_a_setting_that_is_given_twice_stop_every_command(tmp_path: Path) -> None:
    binary, wrong = tmp_path / "binary", tmp_path / "wrong"
    binary.write_bytes(b"\xff\xfe")
    wrong.write_text("mysql://bank:secret@db.example/bank")
    missing, secret = tmp_path / "none", "postgresql://bank:secret@db.example/bank"
    cases: list[tuple[dict[str, str], str]] = [
        ({"DATABASE_URL_FILE": str(missing)}, f"BANKDATA_DATABASE_URL_FILE: {missing} cannot be read: No such file"),
        ({"DATABASE_URL_FILE": str(binary)}, f"BANKDATA_DATABASE_URL_FILE: {binary} is not a text in UTF-8."),
        ({"DATABASE_URL_FILE": str(wrong)}, "BANKDATA_DATABASE_URL: the value cannot be used, expected duckdb:///PATH"),
        (
            {"DATABASE_URL_FILE": str(wrong), "DATABASE_URL": secret},
            "BANKDATA_DATABASE_URL and BANKDATA_DATABASE_URL_FILE are both set: one of them says it.",
        ),
        ({"PUBLIC_URL_FILE": str(wrong)}, "BANKDATA_PUBLIC_URL_FILE: there is no such setting."),
    ]
    for given, said in cases:
        done = bankdata("users", "list", "--data", tmp_path / "data", settings=given)
        assert done.failed_with(said)
        assert "secret" not in done.err
