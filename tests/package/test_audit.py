"""What is known of the packages that run in the service is compared with their versions; what is not known is said."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from packaging.version import Version

from tests.package.advisories import Advisories, Advisory, refresh, stored
from tests.package.audit import JUDGED, asked, locked, report

TODAY = date(2026, 11, 22)
SOURCE: dict[str, Any] = {"package": {"ecosystem": "PyPI", "name": "Alpha"}}
FIRST = {
    "id": "PYSEC-1", "details": "prose", "aliases": ["CVE-1"],
    "affected": [
        SOURCE | {
            "ranges": [
                {"type": "GIT", "events": [{"introduced": "0"}]},
                {"type": "ECOSYSTEM", "events": [{"introduced": "1.4.0"}, {"fixed": "1.4.2"}, {"introduced": "2"}]},
            ]
        },
        {"package": {"ecosystem": "PyPI", "name": "omega"}, "ranges": []},
    ],
}  # fmt: skip


@contextmanager
def database(*pages: dict[str, Any]) -> Iterator[str]:
    """The address of one that answers with these, one after the other; any more is an error of its own."""
    left = list(pages)
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200 if left else 500)
            self.end_headers()
            self.wfile.write(json.dumps(left.pop(0) if left else {}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def skipped(name: str) -> dict[str, Any]:
    return {"name": name, "skip_reason": "not found"}


KNOWN = Advisories(
    TODAY,
    "a friend",
    (
        Advisory("PYSEC-1", "alpha", ((Version("1"), Version("2")),)),
        Advisory(next(iter(JUDGED)), "alpha", ((Version("0"), None),)),
    ),
)


@pytest.mark.requirement("package.audited")
@pytest.mark.parametrize(
    ("version", "is_concerned"),
    [("1.3.9", False), ("1.4.0", True), ("1.4.1", True), ("1.4.2", False), ("2.0", True), ("99", True)],
)
def test_the_set_is_collected_page_by_page_and_compared_version_by_version(
    version: str, is_concerned: bool, tmp_path: Path
) -> None:
    path = tmp_path / "advisories.json"
    withdrawn = FIRST | {"id": "PYSEC-2", "withdrawn": "2026-01-01T00:00:00Z"}
    pages: list[dict[str, Any]] = [{"vulns": [FIRST], "next_page_token": "more"}, {"vulns": [withdrawn]}, {}]
    with database(*pages) as address:
        assert refresh(["alpha", "beta"], TODAY, path=path, database=address) == 1
    assert "prose" not in path.read_text()
    known = stored(path)
    assert (known.collected, known.origin) == (TODAY, address)
    assert [each.id for each in known.of("alpha", version)] == (["PYSEC-1"] if is_concerned else [])
    assert known.of("beta", version) == []


@pytest.mark.requirement("package.audited")
def test_a_database_that_fails_leaves_the_stored_set(tmp_path: Path) -> None:
    path = tmp_path / "advisories.json"
    path.write_text("as it was")
    with database() as address, pytest.raises(httpx.HTTPStatusError):
        refresh(["alpha"], TODAY, path=path, database=address)
    assert path.read_text() == "as it was"


@pytest.mark.requirement("package.audited")
def test_a_package_that_nobody_could_be_asked_about_is_compared_with_what_is_stored() -> None:
    versions = {"alpha": ["0.9", "1.5"], "beta": ["1"]}
    lines, is_vulnerable, is_incomplete = report([skipped("alpha"), skipped("beta")], versions, KNOWN)
    assert (is_vulnerable, is_incomplete) == (True, True)
    assert "VULNERABLE: alpha 1.5: PYSEC-1, as stored" in lines
    assert sum(line.startswith("VULNERABLE") for line in lines) == 1
    assert sum(line.startswith("not concerned: alpha") for line in lines) == 2
    assert lines[-2:] == [
        "NOT AUDITED: 2 packages, for the advisory database did not know or did not answer",
        "instead, 1 of them were compared with the 2 advisories that were stored on 2026-11-22 (a friend)",
    ]


@pytest.mark.requirement("package.audited")
def test_what_the_database_said_counts_alone() -> None:
    found = {"id": "PYSEC-9", "fix_versions": ["3"]}
    told: list[dict[str, Any]] = [
        {"name": "alpha", "version": "1.5", "vulns": [found]},
        {"name": "beta", "version": "1", "vulns": []},
    ]
    assert report(told, {}, KNOWN) == (
        ["VULNERABLE: alpha 1.5: PYSEC-9, fixed in 3", "audited 2 of 2 packages, 1 known vulnerabilities"],
        True,
        False,
    )
    lines, is_vulnerable, _ = report(told[1:], {}, KNOWN)
    assert (lines, is_vulnerable) == (["audited 1 of 1 packages, 0 known vulnerabilities"], False)


@pytest.mark.requirement("package.audited")
def test_nothing_that_is_stored_concerns_what_is_installed() -> None:
    """Fails when an advisory is added whose package is still locked in a version that it concerns."""
    lines, is_vulnerable, _ = report([skipped(name) for name in locked()], locked(), stored())
    assert not is_vulnerable, lines
    assert {"starlette", "cryptography", "pyjwt"} <= {each.package for each in stored().entries}


def test_without_a_database_every_package_of_the_lock_is_reported_as_not_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nobody listens there

    packages = asked()

    assert {each["name"] for each in packages} == set(locked())
    assert all("skip_reason" in each for each in packages)
