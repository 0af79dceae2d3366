"""`bankdata` as processes: starting, refusing to start, being told to stop, and being interrupted."""

import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from handlers.commands.control_socket import FILE_NAME
from tests.cli.conftest import bankdata, bankdata_process
from tests.service.conftest import BANKDATA, Served, environment, free_port, get, running, start

STOPS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.requirement("serve.stop")
@pytest.mark.parametrize("number", STOPS)
@pytest.mark.sampled
def test_a_server_asked_to_stop_ends_with_success_and_leaves_no_socket(
    copied: Callable[[], Path], number: signal.Signals
) -> None:
    with running(copied()) as served:
        sock = served.folder / FILE_NAME
        assert stat.S_ISSOCK(sock.stat().st_mode)
        assert sock.stat().st_mode & 0o777 == 0o600
        before = get(served.client("solo"), "/accounts")
        assert served.stop(number) == 0
        assert not sock.exists()
        assert "Traceback" not in served.log.read_text()
    with running(served.folder) as again:
        assert get(again.client("solo"), "/accounts") == before


@pytest.mark.requirement("serve.stop")
@pytest.mark.long
def test_a_server_asked_to_stop_during_a_sync_stops_without_a_word(copied: Callable[[], Path]) -> None:
    with running(copied()) as served:
        served.advance(86_400)
        (job,) = served.client("solo").post("/sync").json()["syncJobs"]
        get(served.client("solo"), f"/sync/{job['syncId']}")
        assert served.stop() == 0
        assert "Traceback" not in served.log.read_text()


@pytest.mark.requirement("serve.stop")
@pytest.mark.long
def test_a_server_asked_to_stop_lets_a_running_command_end(copied: Callable[[], Path], tmp_path: Path) -> None:
    file = tmp_path / "statement.ofx"
    file.write_text(ofx(4_000))
    with running(copied()) as served:
        process = bankdata_process("import", file, "--user", "empty", "--data", served.folder)
        before = served.log.stat().st_size
        while process.poll() is None and not _is_asked(served):
            time.sleep(0.02)
        assert served.stop() == 0
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in served.log.read_text()[before:]
    rows = bankdata("export", "--user", "empty", "--format", "jsonl", "--data", served.folder).lines
    if process.returncode == 0:
        assert (len(rows), err) == (4_000, "")
        assert out.startswith(f"{file} (ofx): 4000 new, 0 known")
    else:
        assert len(rows) in (0, 4_000)  # a file goes in whole or not at all; what follows the import may be cut off
        assert len(err.splitlines()) == 1


def _is_asked(served: Served) -> bool:
    """Whether somebody is connected to the control socket."""
    sockets = Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(str(served.folder / FILE_NAME)) for line in sockets) > 1


@pytest.mark.requirement("cli.connect")
@pytest.mark.long
def test_a_sync_waits_for_a_slow_bank(copied: Callable[[], Path]) -> None:
    with running(copied()) as served:
        served.advance(86_400)
        served.command("connect", connector="demo", user="solo", bank="Musterbank", settings={}, fault="slow")
        served.advance(86_400)
        process = bankdata_process("sync", "--user", "solo", "--data", served.folder)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            served.advance(30)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert out.startswith("solo\tMusterbank\t")


@pytest.mark.requirement("serve.ready")
@pytest.mark.long
def test_the_demo_prints_a_line_that_works_when_pasted(served: Served) -> None:
    assert served.process.stdout is not None
    lines = [served.process.stdout.readline() for _ in range(12)]
    (curl,) = [line.strip() for line in lines if line.strip().startswith("curl ")]
    header = curl.split('"')[1]
    name, _, value = header.partition(": ")
    answer = httpx.get(curl.split()[-1], headers={name: value}, timeout=60, trust_env=False)
    assert len(answer.json()["accounts"]) == 4
    for user in ("demo", "solo", "empty", "lapsed", "globe"):
        assert any(line.startswith(f"  user {user} ") for line in lines)


@pytest.mark.requirement("serve.port")
@pytest.mark.parametrize("command", ["demo", "serve"])
def test_a_port_in_use_is_one_line(served: Served, tmp_path: Path, command: str) -> None:
    process = bankdata_process(command, "--data", tmp_path / "data", "--port", served.port)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err == (
        f"Error: Port {served.port} of 127.0.0.1 is in use. Choose another with --port, or stop what listens there.\n"
    )
    assert not (tmp_path / "data").exists()


@pytest.mark.requirement("serve.port")
@pytest.mark.parametrize("host", ["203.0.113.7", "no such host"])
def test_an_address_that_is_not_ours_is_one_line(tmp_path: Path, host: str) -> None:
    done = bankdata("serve", "--data", tmp_path, "--port", free_port(), "--host", host)
    assert done.failed_with(f"{host!r} is no address of this machine. Try --host 127.0.0.1.")


@pytest.mark.requirement("store.one-process")
def test_a_second_server_on_one_folder_is_refused_and_the_first_goes_on(served: Served) -> None:
    done = bankdata("demo", "--data", served.folder, "--port", free_port())
    assert done.failed_with("One process serves a DuckDB store")
    assert served.client("solo").get("/accounts").status_code == 200


@pytest.mark.requirement("serve.demo")
def test_serve_refuses_a_demo_and_demo_refuses_real_users(copied: Callable[[], Path], tmp_path: Path) -> None:
    refused = bankdata("serve", "--data", copied(), "--port", free_port())
    assert refused.failed_with("holds the demo. Serve it with `bankdata demo`")
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    for fresh in ([], ["--fresh"]):
        done = bankdata("demo", "--data", tmp_path, "--port", free_port(), *fresh)
        assert done.failed_with(f"{tmp_path} holds real users.")
    assert bankdata("users", "list", "--data", tmp_path).lines == ["eva\tactive subscription\t0 bank connections"]


@pytest.mark.requirement("serve.demo")
@pytest.mark.long
def test_a_demo_starts_whatever_has_been_done_to_its_banks(copied: Callable[[], Path]) -> None:
    folder = copied()
    with running(folder) as served:
        client = served.client("solo")
        served.command("connect", connector="demo", user="solo", bank="Musterbank", settings={}, fault="fails")
        served.advance(86_400)
        assert client.post("/sync").status_code == 202
        served.command("connect", connector="demo", user="demo", bank="Musterbank", settings={}, fault="needs_user")
    with running(folder) as again:
        assert again.client("solo").get("/accounts").status_code == 200
        assert again.client("demo").get("/accounts").status_code == 200


@pytest.mark.requirement("serve.demo")
@pytest.mark.long
def test_a_demo_started_just_after_midnight_minds_the_rate_rule_and_starts(copied: Callable[[], Path]) -> None:
    folder = copied()
    with running(folder) as served:
        answer = served.client("solo").post("/sync")
        assert answer.status_code == 202
        job = answer.json()["syncJobs"][0]["syncId"]
        while get(served.client("solo"), f"/sync/{job}")["status"] != "completed":
            pass
    behind = bankdata("clock", "advance", 1700, "--data", folder)
    assert behind.code == 0
    with running(folder, settings={"TIME_ZONE": "Pacific/Kiritimati"}) as again:  # where it is tomorrow earlier
        assert again.client("solo").get("/accounts").status_code == 200


@pytest.mark.requirement("serve.demo")
@pytest.mark.long
def test_fresh_throws_the_demo_away(copied: Callable[[], Path]) -> None:
    folder = copied()
    assert bankdata("users", "add", "guest", "--random", "--data", folder).code == 0
    process = bankdata_process("demo", "--fresh", "--data", folder, "--port", free_port(), RATE_LIMIT="off")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("The demo bank is open at ")
    names = [line.split("\t")[0] for line in bankdata("users", "list", "--data", folder).lines]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert names == ["demo", "empty", "globe", "lapsed", "solo"]


@pytest.mark.requirement("serve.killed")
@pytest.mark.long
def test_a_socket_that_a_killed_server_left_behind_disturbs_nobody(copied: Callable[[], Path]) -> None:
    served = start(copied(), is_measured=False)
    served.process.kill()
    served.stop()
    assert (served.folder / FILE_NAME).exists()
    assert bankdata("users", "list", "--data", served.folder).code == 0
    with running(served.folder) as again:
        assert again.client("solo").get("/accounts").status_code == 200


@pytest.mark.requirement("serve.deep-folder")
@pytest.mark.long
def test_a_folder_too_deep_for_a_socket_address_works(demo_store: Path, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d" * 40] * 4)
    deep.mkdir(parents=True)
    (deep / "bankdata.duckdb").write_bytes((demo_store / "bankdata.duckdb").read_bytes())
    with running(deep):
        assert bankdata("clock", "advance", 1, "--data", deep).code == 0


@pytest.mark.requirement("import.interrupted")
@pytest.mark.long
def test_ctrl_c_while_importing_leaves_nothing_and_the_file_can_be_imported_again(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "large.ofx"
    assert bankdata("users", "add", "eva", "--random", "--data", data).code == 0
    file.write_text(ofx(200_000))
    process = bankdata_process("import", file, "--user", "eva", "--data", data)
    while not _has_open(process.pid, file):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, "the file was imported before it could be interrupted"
    assert out == ""
    assert err.strip() == "Aborted!"
    assert bankdata("export", "--user", "eva", "--format", "jsonl", "--data", data).lines == []
    file.write_text(ofx(10))
    assert bankdata("import", file, "--user", "eva", "--data", data).lines[0] == f"{file} (ofx): 10 new, 0 known"


@pytest.mark.requirement("export.pipe")
@pytest.mark.parametrize("command", ["export --user solo --format jsonl", "accounts list"])
@pytest.mark.sampled
def test_a_command_whose_reader_has_gone_says_nothing_more(copied: Callable[[], Path], command: str) -> None:
    process = bankdata_process(*command.split(), "--data", copied())
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # as `head -1` does after its line
    with process.stderr as said:
        assert said.read() == ""
    assert process.wait(60) == 1


@pytest.mark.requirement("export.pipe")
@pytest.mark.long
def test_an_export_into_a_pipe_reaches_its_reader_whether_or_not_a_server_runs(copied: Callable[[], Path]) -> None:
    data = copied()

    def export(*to: str) -> str:
        process = bankdata_process("export", "--user", "solo", "--format", "jsonl", "--data", data, *to)
        return process.communicate(timeout=60)[0]

    plain = export()
    assert plain
    assert export("--output", "/dev/stdout") == plain
    with running(data):
        assert export("--output", "/dev/stdout") == plain


@pytest.mark.requirement("export.pipe")
def test_an_export_with_standard_output_closed_asks_for_a_file(copied: Callable[[], Path]) -> None:
    done = subprocess.run(
        ["bash", "-c", '"$0" export --user solo --format jsonl --data "$1" >&-', BANKDATA, copied()],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: Standard output is closed: name a file with '--output'."


@pytest.mark.requirement("cli.one-sentence")
@pytest.mark.parametrize(
    "command",
    ["export --user solo --format jsonl", "accounts list", "capacity --users 1 --bookings 1 --connections 1"],
)
@pytest.mark.sampled
def test_a_full_disk_behind_standard_output_is_one_sentence(copied: Callable[[], Path], command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [BANKDATA, *command.split(), "--data", copied()],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device.\n")


def _has_open(process: int, file: Path) -> bool:
    """Whether the process reads this file."""
    descriptors = Path(f"/proc/{process}/fd").iterdir()
    return any(each.exists() and each.samefile(file) for each in descriptors)


def ofx(count: int) -> str:
    """A statement with so many bookings."""
    head = (
        "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nENCODING:USASCII\nCHARSET:1252\n\n<OFX><BANKMSGSRSV1><STMTTRNRS>"
        "<STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>99910000<ACCTID>1234567<ACCTTYPE>CHECKING</BANKACCTFROM><BANKTRANLIST>"
    )
    row = (
        "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>202611{day:02d}<TRNAMT>-{n}.00<FITID>{n}<NAME>Shop {n}<MEMO>No {n}</STMTTRN>"
    )
    rows = "".join(row.format(day=n % 28 + 1, n=n) for n in range(1, count + 1))
    return f"{head}{rows}</BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"


@pytest.mark.requirement("cli.users")
def test_without_a_terminal_nobody_is_asked_for_a_password(tmp_path: Path) -> None:
    out, err = bankdata_process("users", "add", "eva", "--data", tmp_path / "data").communicate(timeout=60)
    assert out == ""
    assert err == "Error: There is no terminal to ask for the password. Use --password-stdin or --random.\n"


@pytest.mark.requirement("decision 70")
@pytest.mark.parametrize(
    "command", ["users list", "check", "sync", "backup", "compact", "keys rotate", "registration-token", "grants list"]
)
def test_a_mistyped_folder_becomes_no_store(tmp_path: Path, command: str) -> None:
    done = bankdata(*command.split(), "--data", tmp_path / "mistyped")
    assert done.failed_with(f"There is no store at {tmp_path / 'mistyped' / 'bankdata.duckdb'}. Name its folder with")
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.requirement("decision 70")
def test_a_new_store_is_announced_once(tmp_path: Path) -> None:
    first, second = (bankdata("users", "add", name, "--random", "--data", tmp_path) for name in ("eva", "tom"))
    assert first.err.splitlines()[0] == f"Made a new store in {tmp_path}."
    assert "Made" not in second.err


@pytest.mark.requirement("decision 69")
@pytest.mark.long
def test_ctrl_c_at_an_import_by_the_server_takes_it_back(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "large.ofx"
    file.write_text(ofx(60_000))
    process = bankdata_process("import", file, "--user", "empty", "--data", served.folder)
    while not _is_asked(served):
        time.sleep(0.02)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert err.splitlines() == [
        "Asking the server to stop ... (Ctrl-C again to leave without waiting for it)",
        "Stopped. Only what was reported before has been stored.",
        "Aborted!",
    ]
    assert bankdata("export", "--user", "empty", "--format", "jsonl", "--data", served.folder).lines == []
    assert "Traceback" not in served.log.read_text()


@pytest.mark.requirement("cli.logged")
def test_the_log_names_commands_that_change_something_and_nobody(served: Served) -> None:
    before = served.log.stat().st_size
    assert bankdata("users", "add", "waldemar", "--random", "--data", served.folder).code == 0
    assert bankdata("users", "list", "--data", served.folder).code == 0
    assert bankdata("users", "add", "waldemar", "--random", "--data", served.folder).code == 1
    log = served.log.read_text()[before:]
    lines = [line.split(" ", 3)[3] for line in log.splitlines() if " bankdata.commands " in line]
    done, refused = lines
    assert done.startswith("bankdata.commands command=users add user=u")
    assert done.endswith(" outcome=done")
    assert refused == done.replace("outcome=done", "outcome=CommandError")
    assert "waldemar" not in log
