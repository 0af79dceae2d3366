"""The kit for a company in docs/deploy: what no container is needed for is run, the rest is read."""

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from contextlib import closing
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from handlers.settings import load
from handlers.work.services import open_services
from tests.engines import EMPTY, Cluster, free_port, programs
from tests.silence import PGBOUNCER, is_closed

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
COMPOSE = DEPLOY / "compose-company.yaml"

pytestmark = [pytest.mark.engine("postgresql"), pytest.mark.requirement("deploy.company")]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    subprocess.run(["sh", DEPLOY / "company-secrets.sh", folder], check=True, timeout=60)
    return folder


def services() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text("utf-8"))["services"])


def test_each_file_volume_secret_and_setting_of_the_composition_is_there(secrets: Path) -> None:
    whole = yaml.safe_load(COMPOSE.read_text("utf-8"))
    assert {Path(each["file"]).name for each in whole["secrets"].values()} == {path.name for path in secrets.iterdir()}
    for service in services().values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in whole["volumes"]
        assert set(service.get("secrets", [])) <= whole["secrets"].keys()
        assert set(service.get("depends_on", {})) <= services().keys()
    for name in ("bankdata", "drill", "rehearsal"):
        given = {key: str(value) for key, value in services()[name]["environment"].items()}
        assert set(re.findall(r"/run/secrets/(\w+)", str(given))) == set(services()[name]["secrets"])
        here = {key: value.replace("/run/secrets", str(secrets)) for key, value in given.items()}
        settings = load({**here, "BANKDATA_PUBLIC_URL": "https://bank.example"})
        database = "rehearsal" if name == "rehearsal" else "bankdata"
        assert settings.database_url.endswith(f"@pgbouncer:6432/{database}")
        assert f"\n{database} = host=db" in (DEPLOY / "pgbouncer.ini").read_text("utf-8")
        assert bool(settings.database_app_url) is (name != "rehearsal")  # which a fresh copy has no rights for
        assert any(IPv4Address("10.89.78.9") in each for each in settings.metrics_for if each.version == 4)


def test_no_service_takes_the_address_that_another_one_has_to_have() -> None:
    [net] = yaml.safe_load(COMPOSE.read_text("utf-8"))["networks"]["inside"]["ipam"]["config"]
    taken_by_others = IPv4Network(net["ip_range"])
    assert taken_by_others.subnet_of(IPv4Network(net["subnet"]))
    networks = [each["networks"] for each in services().values() if "networks" in each]
    fixed = [each["inside"]["ipv4_address"] for each in networks if isinstance(each, dict)]
    assert len({*fixed, net["gateway"]}) == len(fixed) + 1
    assert not any(IPv4Address(each) in taken_by_others for each in (*fixed, net["gateway"]))
    assert len(networks) - len(fixed) <= len(list(taken_by_others.hosts()))


@pytest.mark.requirement("deploy.company.commands")
def test_the_command_of_the_kit_asks_the_store_of_the_server(tmp_path: Path) -> None:
    """Typed without the unit's settings it would look for a store in the data folder, and make one there."""
    given = dict(
        line.split("=", 1) for line in (DEPLOY / "company.env").read_text("utf-8").splitlines() if line[0] != "#"
    )
    assert "EnvironmentFile=/etc/bankdata/settings" in (DEPLOY / "company.conf").read_text("utf-8").splitlines()
    cluster, store = Cluster(), tmp_path / "store"
    store.mkdir(mode=0o700)
    try:
        cluster.sql(f"CREATE DATABASE bank {EMPTY}")
        secrets = {
            "database_url": cluster.url("bank"),
            "database_app_url": cluster.app_url("bank"),
            "rate_limit_url": "redis://127.0.0.1:1",  # a command asks it nothing
            "keys_secret": "a secret of the gate, of 32 characters or more",
        }
        for name, secret in secrets.items():
            (tmp_path / name).write_text(secret)
        assert {Path(value).name for name, value in given.items() if name.endswith("_FILE")} == secrets.keys()
        settings = tmp_path / "settings"
        moved = {name: value.replace("/etc/bankdata", str(tmp_path)) for name, value in given.items()}
        moved["BANKDATA_DATA_DIR"] = str(store)
        settings.write_text("".join(f"{name}={value}\n" for name, value in moved.items()))
        as_nobody_else = tmp_path / "setpriv"  # another user than our own takes root
        as_nobody_else.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
        as_nobody_else.chmod(0o755)
        for command in (["users", "add", "eva", "--random"], ["users", "list"]):
            done = subprocess.run(
                ["sh", DEPLOY / "company-command.sh", *command],
                env={
                    "PATH": f"{tmp_path}:{os.environ['PATH']}",
                    "SETTINGS": str(settings),
                    "PROGRAM": str(Path(sys.executable).with_name("bankdata")),
                },
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("eva\t")
        assert not list(store.iterdir()), "nothing was made on the side"
    finally:
        cluster.remove()


def test_secrets_are_made_once_each_another_one(secrets: Path) -> None:
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    again = subprocess.run(["sh", DEPLOY / "company-secrets.sh", secrets], check=False, capture_output=True, timeout=60)
    assert again.returncode
    assert (secrets / "database_password").read_text() != (secrets / "database_app_password").read_text()


def test_roles_pooler_and_secrets_of_the_kit_open_a_service_with_the_second_wall(secrets: Path, tmp_path: Path) -> None:
    cluster, port, found = Cluster(), free_port(), programs()
    assert found is not None
    given = services()["db"]["environment"]
    try:
        cluster.sql("DROP ROLE bankdata_app")
        cluster.sql(f"CREATE DATABASE {given['POSTGRES_DB']} {EMPTY}")
        cluster.sql(f"ALTER ROLE bankdata PASSWORD '{(secrets / 'database_password').read_text()}'")
        subprocess.run(
            ["sh", DEPLOY / "company-roles.sh"],
            env={
                "PATH": f"{found}:{os.environ['PATH']}",
                "PGHOST": "127.0.0.1",
                "PGPORT": str(cluster.port),
                "SECRETS": str(secrets),
                **given,
            },
            check=True,
            timeout=60,
        )
        hba = cluster.folder / "data" / "pg_hba.conf"
        hba.write_text("host all all all scram-sha-256\n")  # as the image has it
        cluster.sql("SELECT pg_reload_conf()")
        text = (DEPLOY / "pgbouncer.ini").read_text("utf-8").replace("/run/secrets", str(cluster.folder))
        text = text.replace("host=db port=5432", f"host=127.0.0.1 port={cluster.port}")
        (cluster.folder / "pgbouncer.ini").write_text(text.replace("listen_port = 6432", f"listen_port = {port}"))
        (cluster.folder / "pgbouncer.ini").chmod(0o644)  # whatever an earlier test has set as the umask
        shutil.copy(secrets / "pgbouncer_users", cluster.folder)
        user = "postgres" if os.geteuid() == 0 else None
        log = (tmp_path / "pgbouncer.log").open("w+")
        pooler = subprocess.Popen(
            [PGBOUNCER, cluster.folder / "pgbouncer.ini"], user=user, cwd="/", stdout=log, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + 60
            while is_closed(port):
                is_late = pooler.poll() is not None or time.monotonic() > deadline
                assert not is_late, f"PgBouncer does not start: {Path(log.name).read_text()}"
                time.sleep(0.05)
            urls = {
                name: (secrets / name.lower()).read_text().replace("pgbouncer:6432", f"127.0.0.1:{port}")
                for name in ("DATABASE_URL", "DATABASE_APP_URL")
            }
            settings = load(
                {
                    **{f"BANKDATA_{name}": value for name, value in urls.items()},
                    "BANKDATA_DATABASE_PREPARE": services()["bankdata"]["environment"]["BANKDATA_DATABASE_PREPARE"],
                    "BANKDATA_KEYS_SECRET": (secrets / "keys_secret").read_text(),
                },
                data_dir=tmp_path / "data",
            )
            with closing(open_services(settings)) as opened:
                (row,) = opened.of("u").rows(
                    "SELECT current_user AS role, current_setting('statement_timeout') AS most"
                )
                assert row == {"role": "bankdata_app", "most": "30s"}
        finally:
            pooler.terminate()
            pooler.wait(60)
            log.close()
    finally:
        cluster.remove()
