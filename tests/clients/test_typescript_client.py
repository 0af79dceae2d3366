"""Types that openapi-typescript makes of openapi.json: strict TypeScript accepts the calls, and they work."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.calls import is_for_apps
from tests.contract.fuzz import OF_THE_PAGE

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
STRICT = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noImplicitReturns"]
NODE = ["--module", "nodenext", "--moduleResolution", "nodenext", "--target", "es2022", "--lib", "es2023"]
NOT_LIBRARIES = "--skipLibCheck"  # what others declare; the types of our contract are in a file that is checked


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """every_operation.ts, compiled against the generated types."""
    packages = Path(run(["bash", str(FOLDER / "npm" / "install.sh")], FOLDER).strip()) / "node_modules"
    folder = tmp_path_factory.mktemp("typescript")
    (folder / "node_modules").symlink_to(packages)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "every_operation.ts").write_bytes((FOLDER / "every_operation.ts").read_bytes())
    run([str(packages / ".bin" / "openapi-typescript"), str(ROOT / "openapi.json"), "-o", "schema.ts"], folder)
    run(
        [str(packages / ".bin" / "tsc"), *STRICT, *NODE, NOT_LIBRARIES, "--types", "node", "every_operation.ts"], folder
    )
    return folder / "every_operation.js"


@pytest.mark.requirement("clients.typescript")
@pytest.mark.long
def test_every_operation_arrives_without_loss(
    program: Path, demo: Any, calls_of: Any, description: Mapping[str, Any]
) -> None:
    token = demo.token("demo")
    calls = {call.operation_id: call for call in calls_of("demo")}
    known = {
        **{name: value for call in calls.values() for name, value in call.arguments.items() if name != "id"},
        "id": calls["getTransaction"].arguments["id"],
        "subscription": calls["getSubscription"].arguments["id"],
    }
    compared = calls.keys() - {"startSync", "exportTransactions", *OF_THE_PAGE}
    said = {name: body_of(demo, token, calls[name]) for name in compared}  # before it syncs
    printed = run(["node", str(program), demo.base_url, token, json.dumps(known)], program.parent)
    received = json.loads(printed)
    assert received.keys() == {
        operation["operationId"]
        for path, methods in description["paths"].items()
        for operation in methods.values()
        if is_for_apps(path, operation) and operation["operationId"] not in OF_THE_PAGE
    }
    started = received.pop("startSync")  # a second one is another job
    assert started["skippedConnections"] == 0
    assert [job.keys() for job in started["syncJobs"]] == [{"syncId", "status", "error"}] * 2
    assert received.pop("exportTransactions").startswith("record,account,iban,")
    for answers in (received, said):
        answers["getIntegrity"].pop("checkedAt")  # when each was asked
        for name in ("listTransactionChanges", "listAccountChanges"):
            answers[name].pop("nextCursor")  # as above
    assert received == said


def body_of(demo: Any, token: str, call: Any) -> Any:
    """What the service sends to the same call, read by Python's json."""
    query = {
        "listTransactions": "&page=1&perPage=20",
        "getBalances": "&every=month",
        "getForecast": "&days=30",
        "getCashflow": "&months=3",
        "getCashflowCategories": "&months=3",
    }.get(call.operation_id, "")
    chosen = f"?accountIds={call.arguments['accountIds']}{query}" if "accountIds" in call.arguments else ""
    answer = demo.call(call.method, call.path + chosen, token)
    assert answer.status == 200
    return answer.body


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
