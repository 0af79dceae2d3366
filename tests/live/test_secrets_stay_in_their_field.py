"""No secret anywhere outside its field: not in the store, backups, logs, outputs, traces or lists of processes."""

from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired

import httpx
import pytest

from connectors.exchange_protocol import as_text
from connectors.outgoing_http import Exchange, Outgoing, ProviderAnswer
from connectors.sources.fints.dialog import Access, Challenge
from storage.bank_access.connection_keys import FILE_NAME
from tests.days import today
from tests.engines import opened
from tests.live.conftest import Live
from tests.live.test_enable_banking import bank, fields, signed_in, wait_for_sync
from tests.live.test_finapi import service
from tests.service.conftest import BANKDATA, environment
from tests.simulators.enable_banking import BANK
from tests.simulators.finapi import SECRET
from tests.simulators.fints import FinTsBank, example
from tests.simulators.fints_bank.accounts import BANK_CODE
from tests.simulators.simplefin import booking
from tests.simulators.web_bank import WebBank, serving

__all__ = ["bank", "service"]  # fixtures of other tests, for these too

pytestmark = pytest.mark.requirement("live.secrets")


@dataclass
class Seen:
    """What anybody else may read: lists of processes, outputs, logs, the store and its backups."""

    live: Live
    text: bytes = b""

    def process(self, pid: int) -> None:
        """What everybody on the machine sees of a process, and its user of the environment."""
        with suppress(OSError):  # it ends just now
            for name in ("cmdline", "environ"):
                self.text += Path(f"/proc/{pid}/{name}").read_bytes()

    def command(self, *arguments: str, stdin: str = "", then: Callable[[str], object] | None = None) -> str:
        """A command in a process of its own, looked at as long as it runs; what it prints. `then` is done with the
        address that it prints first."""
        typed = [str(BANKDATA), *arguments, "--data", str(self.live.served.folder)]
        with Popen(typed, env=environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdin.write(stdin)
            process.stdin.close()
            said = process.stdout.readline() if then is not None else ""
            if then is not None:
                then(said.strip())
            while process.poll() is None:
                self.process(process.pid)
                with suppress(TimeoutExpired):
                    process.wait(0.05)
            said += process.stdout.read()
            self.text += said.encode() + process.stderr.read().encode()
        return said

    def files(self) -> None:
        """All files of the data folder but the key, and each row of the backup in clear."""
        folder = self.live.served.folder
        for path in folder.rglob("*"):
            if path.is_file() and path.name != FILE_NAME:
                self.text += path.read_bytes()
        self.text += self.live.served.log.read_bytes()
        (backup,) = (folder / "backups").glob("*/bankdata.duckdb")
        with closing(opened(f"duckdb:///{backup}")) as store:
            tables = store.rows("SELECT table_name FROM information_schema.tables")
            for name in (row["table_name"] for row in tables):
                self.text += str(store.rows(f'SELECT CAST(t AS VARCHAR) AS row FROM "{name}" AS t')).encode()


@pytest.fixture
def seen(live: Live) -> Seen:
    return Seen(live)


def from_the_page(live: Live, user: str, token: str) -> None:
    """SimpleFIN, from the account page."""
    with httpx.Client(base_url=live.served.address, follow_redirects=True, timeout=60, trust_env=False) as browser:
        signed_in(browser, user)
        form = fields(browser.get("/account/connect").text)["form_token"]
        step = browser.post("/account/connect", data={"form_token": form, "source": "simplefin"})
        done = browser.post("/account/connect/step", data={**fields(step.text), "token": token})
        assert "SimpleFIN is connected." in done.text
    wait_for_sync(live, user)


def credentials(providers: Iterable[WebBank]) -> set[str]:
    """What was sent to say who asks: tokens, and user and password of HTTP."""
    sent = [
        each.headers["authorization"]
        for provider in providers
        for each in provider.asked
        if each.headers.get("authorization")
    ]
    return {header.partition(" ")[2] for header in sent}


@pytest.mark.usefixtures("bank", "service")
@pytest.mark.long
def test_no_secret_of_any_source_is_found_where_anybody_else_reads(live: Live, seen: Seen, tmp_path: Path) -> None:
    user, bridge, trace = live.user(), live.simplefin, tmp_path / "trace.txt"
    customer, second = bridge.customer(), bridge.customer()
    for each in (customer, second):
        each.account("1", "5.00", booking("a", today(), "-1.00", "Cafe Secretive"), day=today())
    asking = ("connect", "simplefin", "--user", user, "--trace", str(trace))
    bridge.faults.append("503")
    assert seen.command(*asking, stdin=f"{customer.token}\n") == ""
    trace.unlink()
    assert "1 new account" in seen.command(*asking, stdin=f"{customer.token}\n")
    from_the_page(live, user, second.token)

    def signs_in(url: str) -> None:
        httpx.get(f"{url}/approve", follow_redirects=True, timeout=60, trust_env=False)

    enable_banking = ("connect", "enable-banking", "--user", user, "--country", "DE", "--bank", BANK)
    assert f"{BANK}: 1 new account" in seen.command(*enable_banking, then=signs_in)
    finapi = ("connect", "finapi", "--user", user)
    assert "Beispielbank: " in seen.command(*finapi, then=lambda _: live.finapi.service.sign_in())

    with serving(FinTsBank(example(today()))) as fints:
        fints.bank.tan, fints.bank.right_tan = "typed", "8391575318"
        reached = ("--url", fints.url, "--bank-code", BANK_CODE)
        typed = f"{fints.bank.login}\n{fints.bank.pin}\nyes\n{fints.bank.right_tan}\n"
        assert "Testbank AG: " in seen.command("connect", "fints", "--user", user, *reached, stdin=typed)
        assert seen.command("sync", "--user", user).count("new transaction") == 4
        for provider in (bridge, live.enable_banking, live.finapi, fints):
            provider.faults.append("hang-up")
        assert seen.command("sync", "--user", user).count("failed") == 4
        assert seen.command("keys", "rotate", "--connections")
    seen.command("backup")
    seen.process(live.served.process.pid)
    seen.files()

    codes = [
        each.document()["code"]
        for each in live.enable_banking.asked
        if (each.method, each.path) == ("POST", "/sessions")
    ]
    key = (live.served.folder.parent / "enable-banking.pem").read_text().splitlines()[1:-1]
    states = [each["state"] for each in live.enable_banking.consents.values()]
    secrets = {
        *(word for each in (customer, second) for word in (each.token, each.password)),
        *live.enable_banking.sessions, *codes, *states, *key,
        *live.finapi.service.users.values(), SECRET,
        fints.bank.login, fints.bank.pin, fints.bank.right_tan,
        *credentials((bridge, live.enable_banking, live.finapi)),
    }  # fmt: skip
    looked_at = (b"Cafe Secretive", b"BANKDATA_FINTS_PRODUCT", b"\0connect\0fints\0", b"Encrypted")
    assert all(each in seen.text for each in looked_at)
    assert [secret for secret in secrets if secret.encode() in seen.text] == []
    seen.text = trace.read_bytes()
    assert [secret for secret in secrets if secret.encode() in seen.text] == []
    assert not list((live.served.folder / "backups").rglob(FILE_NAME))
    assert (live.served.folder / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert trace.stat().st_mode & 0o777 == 0o600
    assert b"GET 127.0.0.1" in trace.read_bytes()
    assert b"Secretive" not in trace.read_bytes()


def test_a_trace_shows_shapes_and_error_codes_and_nothing_else() -> None:
    said = as_text(
        Exchange(
            host="api.example",
            request=Outgoing(method="POST", path="/sessions/8f3kAbc", parameters={"date_from": "2026-01-31"}),
            answer=ProviderAnswer(
                host="api.example",
                status=401,
                content_type="application/json",
                retry_after=None,
                body=b'{"error": "EXPIRED_SESSION", "message": "Max 12", "list": [1.5, null, true]}',
            ),
        )
    )
    assert said == (
        "POST api.example/sessions/0x0xXxx?date_from=0000-00-00\n  401 application/json\n".replace("X", "x")
        + '  {"error": "EXPIRED_SESSION", "message": "xxx 00", "list": ["0.0", null, true]}\n'
    )


def test_a_trace_says_where_no_answer_came() -> None:
    asked = Exchange(host="api.example", request=Outgoing(method="GET", path="/accounts"), answer=None)
    assert as_text(asked) == "GET api.example/accounts\n  no answer\n"


def test_what_opens_a_bank_and_its_saved_dialog_are_not_shown_where_they_are_named() -> None:
    access = Access(url="https://bank.example", bank_code="10000000", login="s3cret", pin="s3cret", product="p")
    challenge = Challenge(
        text="Approve", is_in_app=True, wait=1.0, image=None, image_type="", paused={"state": "s3cret"}
    )
    assert "s3cret" not in f"{access!r} {challenge}"
