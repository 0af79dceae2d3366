"""Pages of the documentation as the tests read them: blocks of code, tables, headings, and a shell that runs them."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.service.conftest import demo_store

__all__ = ["demo_store"]  # a fixture of the service's tests, for these too

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:8000"  # where the documents say that the server listens
PAGE_SECONDS_MAX = 600  # on a machine that does other things as well
PARTS = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)

# What `bankdata` is while a page is run: servers go to the background on a port of the test's own
SHIM = """#!/bin/bash
if [ "$1" != demo ] && [ "$1" != serve ]; then exec "$REAL_BANKDATA" "$@"; fi
stop_old() {
    [ -f "$SERVER_PID" ] || return 0
    kill "$(cat "$SERVER_PID")" 2>/dev/null
    for _ in $(seq 200); do kill -0 "$(cat "$SERVER_PID")" 2>/dev/null || return 0; sleep 0.05; done
}
stop_old
"$REAL_BANKDATA" "$@" --port "$SERVER_PORT" >"$SERVER_PID.out" 2>&1 </dev/null &
echo $! >"$SERVER_PID"
for _ in $(seq 600); do
    grep -q -e 'Stop with' -e '^Serving' "$SERVER_PID.out" && exit 0
    kill -0 "$(cat "$SERVER_PID")" 2>/dev/null || break
    sleep 0.1
done
cat "$SERVER_PID.out" >&2
exit 1
"""

STATEMENT = """<?xml version="1.0"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>
<Stmt><Id>1</Id><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id><Ccy>EUR</Ccy></Acct><Ntry><Amt Ccy="EUR">12.99</Amt>
<CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt></Ntry></Stmt></BkToCstmrStmt>
</Document>"""

SHOWN_FILES = {"jsonl": "rules.jsonl", "csv": "february.csv", "json": "beispielstadt.json"}  # by what kind of block


@dataclass(frozen=True)
class Block:
    """A fenced block; `shown` is the block of output right behind it, with its language."""

    language: str
    text: str
    mark: str
    shown: tuple[str, str] | None

    @property
    def is_run(self) -> bool:
        return self.language == "sh" and not self.mark.startswith("not run: ")


def pages() -> list[Path]:
    """Every document of the project."""
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    found = list(PARTS.finditer(text))
    result = []
    for number, part in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        shown = None
        if following and following["language"] in ("json", "text") and not text[part.end() : following.start()].strip():
            shown = (following["language"], following["text"])
        result.append(Block(part["language"], part["text"], part["mark"] or "", shown))
    return result


def table(page: Path, first_heading: str) -> list[list[str]]:
    """The rows of the table whose first heading this is, cells trimmed."""
    rows: list[list[str]] = []
    for line in page.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        if not line.startswith("|"):
            if rows:
                break
        elif rows or cells[0] == first_heading:
            rows.append(cells)
    return rows[2:]


def ticked(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def run_blocks(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Runs blocks as one shell session in an empty home, or in one with this data folder; what each wrote to standard
    output."""
    port = _free_port()
    clone, out, home = tmp_path / "clone", tmp_path / "out", tmp_path / "home"
    for folder in (clone / ".venv/bin", out, home):
        folder.mkdir(parents=True)
    for name, script in (("bankdata", SHIM), ("pip", "#!/bin/sh\n"), ("python3", "#!/bin/sh\n")):
        (clone / ".venv/bin" / name).write_text(script)
        (clone / ".venv/bin" / name).chmod(0o755)
    (clone / "statement.xml").write_text(STATEMENT)
    pid = tmp_path / "server.pid"
    inherited = os.environ.items()  # without coverage: what runs here is a clone
    environment = {
        name: value for name, value in inherited if not name.startswith(("BANKDATA_", "COVERAGE_", "XDG_"))
    } | {
        "HOME": str(home),
        "TZ": "Europe/Berlin",  # as of the server: `date` in a block says its day
        "PATH": f"{clone / '.venv/bin'}:{os.environ['PATH']}",
        "REAL_BANKDATA": str(Path(sys.executable).with_name("bankdata")),
        "SERVER_PORT": str(port),
        "SERVER_PID": str(pid),
    }

    def run(read: list[Block], data: Path | None = None) -> list[str]:
        if data is not None:
            shutil.copytree(data, home / ".local/share/bankdata")
        todo = [block for block in read if block.is_run]
        for block in read:
            if block.language in SHOWN_FILES:
                (clone / SHOWN_FILES[block.language]).write_text(block.text)
        steps = ["set -euo pipefail"]
        for number, block in enumerate(todo):
            steps += ["{", block.text, f'}} >"{out}/{number}" 2>"{out}/{number}.err"']
        script = "\n".join(steps).replace(ADDRESS, f"127.0.0.1:{port}")
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PAGE_SECONDS_MAX,
            check=False,
        )
        printed = [path.read_text() for path in (out / str(n) for n in range(len(todo))) if path.exists()]
        last = out / f"{len(printed) - 1}.err"
        said = last.read_text() if last.exists() else ended.stderr
        assert ended.returncode == 0, f"block {len(printed)}:\n{todo[len(printed) - 1].text}\n{said}"
        return [text.replace(f"127.0.0.1:{port}", ADDRESS) for text in printed]

    yield run
    if pid.exists():
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
