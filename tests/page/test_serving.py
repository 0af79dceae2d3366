"""How the page is served: fixed addresses, files that never change, a policy that lets no script but ours run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from handlers.languages import LANGUAGES
from handlers.page.serving import PLACES, module_files, page_routes
from handlers.web.app import CONTRACT_FILE

STATIC = Path(__file__).resolve().parents[2] / "handlers" / "page" / "static"
SCRIPTS_MAX = 40_000  # bytes as they are sent, of what the overview needs
ALL_SCRIPTS_MAX = 102_000  # the same when every place has been opened, in one language
SCRIPTS_DECODED_MAX = 303_000  # of all, in both languages

Served = Callable[..., TestClient]


@pytest.fixture
def served() -> Served:
    def make(public_url: str = "https://bank.example", auth_url: str = "https://bank.example") -> TestClient:
        routes = page_routes(public_url=public_url, auth_url=auth_url, contract=CONTRACT_FILE.read_bytes())
        return TestClient(Starlette(routes=routes))

    return make


@pytest.mark.requirement("page.served")
@pytest.mark.parametrize("path", PLACES)
def test_every_place_is_the_same_document_which_holds_no_data_and_costs_nothing_the_second_time(
    served: Served, path: str
) -> None:
    answer = served().get(path)
    assert answer.status_code == 200
    assert answer.content == served().get("/").content
    assert answer.headers["cache-control"] == "no-cache"
    again = served().get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.requirement("page.served")
@pytest.mark.parametrize("path", ["/nowhere", "/transactions/", "/assets/", "/assets/0123456789abcdef/main.js"])
def test_what_is_no_place_is_not_found(served: Served, path: str) -> None:
    assert served().get(path, follow_redirects=False).status_code in (404, 307)


@pytest.mark.requirement("page.served")
def test_every_file_that_is_named_is_there_for_good(served: Served) -> None:
    client = served()
    named = re.findall(r'(?:href|src)="(/assets/[^"]+)"', client.get("/").text)
    assert {name.rpartition(".")[2] for name in named} == {"js", "css", "svg"}
    for name in named:
        answer = client.get(name)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")


@pytest.mark.requirement("page.served")
def test_below_the_path_of_a_proxy_every_address_begins_with_it(served: Served) -> None:
    client = served("https://example.org/bank", "https://example.org/bank")
    page = client.get("/").text
    assert 'data-base="/bank"' in page
    assert set(re.findall(r'(?:href|src)="(/[^/"]+/[^/"]+)/', page)) == {"/bank/assets"}
    taken_off = re.findall(r'src="/bank(/assets/[^"]+)"', page)
    assert {client.get(path).status_code for path in taken_off} == {200}


@pytest.mark.requirement("page.installed")
@pytest.mark.parametrize("base", ["", "/bank"])
def test_a_device_installs_the_page_at_its_address_with_a_worker_that_may_do_nothing_elsewhere(
    served: Served, base: str
) -> None:
    client = served(f"https://example.org{base}", f"https://example.org{base}")
    named = re.findall(r'rel="(?:manifest|apple-touch-icon)" href="([^"]+)"', client.get("/").text)
    assert named == [f"{base}/app.webmanifest", f"{base}/app-icon.png"]
    manifest = client.get("/app.webmanifest")
    assert manifest.headers["content-type"] == "application/manifest+json"
    said = manifest.json()
    assert {said[each] for each in ("id", "start_url", "scope")} == {f"{base}/"}
    assert (said["display"], [each["src"] for each in said["icons"]]) == ("standalone", [f"{base}/app-icon.png"])
    assert client.get("/app-icon.png").content.startswith(b"\x89PNG")
    worker = client.get("/worker.js")  # beside the page: the folder of its address bounds its scope
    assert (worker.headers["content-type"], worker.headers["cache-control"]) == (
        "text/javascript; charset=utf-8",
        "no-cache",
    )
    assert worker.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"fetch|caches|indexedDB|importScripts", worker.text)


@pytest.mark.requirement("page.policy")
def test_no_script_runs_but_ours_and_no_text_becomes_markup(served: Served) -> None:
    headers = served().get("/").headers
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types worker"
    )
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert (headers["referrer-policy"], headers["x-frame-options"]) == ("no-referrer", "DENY")


@pytest.mark.requirement("page.policy")
def test_a_sign_in_on_another_host_may_be_asked_for_tokens_and_nobody_else(served: Served) -> None:
    headers = served(auth_url="https://login.example/auth").get("/").headers
    assert "connect-src 'self' https://login.example;" in headers["content-security-policy"]


@pytest.mark.requirement("page.size")
def test_the_scripts_stay_within_their_budget(served: Served) -> None:
    client = served()
    page = client.get("/").text
    folder, first = re.findall(r'src="(/assets/\w+)/main\.js"', page)[0], re.findall(r'(/assets/\S+\.js)"', page)
    names = [f"{folder}/{name}" for name in module_files() if name.endswith(".js")]
    sizes = {name: int(client.get(name).headers["content-length"]) for name in names}
    spoken = {
        language: {name: size for name, size in sizes.items() if name.endswith(f"-{language}.js")}
        for language in LANGUAGES
    }
    others = sum(sizes.values()) - sum(sum(each.values()) for each in spoken.values())
    first_words = max(sizes[f"{folder}/words-{language}.js"] for language in spoken)
    assert sum(sizes[name] for name in first) + first_words <= SCRIPTS_MAX
    assert others + max(sum(each.values()) for each in spoken.values()) <= ALL_SCRIPTS_MAX
    assert sum(len(client.get(name).content) for name in names) <= SCRIPTS_DECODED_MAX


@pytest.mark.requirement("page.served")
def test_our_files_are_sent_without_comments_and_libraries_as_they_are(served: Served) -> None:
    client = served()
    folder = re.findall(r'src="(/assets/\w+)/main\.js"', client.get("/").text)[0]
    assert client.get(f"{folder}/ui.js").text.startswith('import { h } from "./vendor/preact.js";\nimport htm')
    assert client.get(f"{folder}/vendor/preact.js").content == (STATIC / "vendor" / "preact.js").read_bytes()
    for name in ("early", "format", "list", "parts"):
        sent = client.get(f"{folder}/{name}.js").text
        assert sent.count("\n") > 0.5 * len((STATIC / f"{name}.js").read_text().splitlines()), name
        assert not re.search(r"^\s*(//|/\*|\*)", sent, re.MULTILINE)
        assert ">\n<" not in sent, name
