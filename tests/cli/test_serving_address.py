"""Where a server is reached: one for others says under which address, and says when passwords would travel in clear."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import bankdata
from tests.service.conftest import Served, free_port, running


@pytest.mark.requirement("serve.address")
@pytest.mark.parametrize("command", ["serve", "demo"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_for_others_is_not_started_without_an_address_for_them(
    command: str, host: str, tmp_path: Path
) -> None:
    ended = bankdata(command, "--host", host, "--port", str(free_port()), "--data", tmp_path / "data")
    assert ended.code == 1
    assert "set BANKDATA_PUBLIC_URL" in ended.err
    assert not (tmp_path / "data").exists()


def said(served: Served) -> str:
    served.stop()
    return served.log.read_text()


@pytest.mark.requirement("serve.address")
@pytest.mark.parametrize(
    ("public", "is_warned"), [("http://192.0.2.1:8000", True), ("https://bank.example.org", False)]
)
@pytest.mark.sampled
def test_a_public_address_without_tls_is_warned_of(public: str, is_warned: bool, tmp_path: Path) -> None:
    if is_warned:
        assert bankdata("users", "add", "eva", "--random", "--data", tmp_path / "data").code == 0
    with running(tmp_path / "data", command="serve", settings={"PUBLIC_URL": public}) as served:
        assert ("passwords and tokens travel in clear" in said(served)) == is_warned
        assert ("There are no users yet. Add one with" in said(served)) != is_warned


@pytest.mark.requirement("people.links")
def test_a_start_without_people_prints_a_link_for_the_first_one(tmp_path: Path) -> None:
    with running(tmp_path / "data", command="serve") as served:
        printed = said(served)
    (link,) = re.findall(r"^http://127\.0\.0\.1:\d+/join#[\w-]{43}$", printed, re.M)
    assert "which works once, within 24 hours" in printed
    assert link
