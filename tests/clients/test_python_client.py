"""A Python client that openapi-python-client makes of openapi.json calls every operation for every demo user."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.sources.demo.households import USERS
from tests.contract.fuzz import OF_THE_PAGE

Generated = Callable[[str], Any]
PACKAGE = "bankdata_generated_client"
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
USER_NAMES = [user.name for user in USERS]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generated]:
    """Modules of the generated package by their name in it."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "config.yml").write_text("post_hooks: []\n")  # its formatters change nothing about what is called
    generator = str(Path(sys.executable).with_name("openapi-python-client"))
    source = ["--path", str(Path(__file__).parents[2] / "openapi.json")]
    options = ["--output-path", PACKAGE, "--config", "config.yml", "--meta", "none", "--fail-on-warning"]
    done = subprocess.run([generator, "generate", *source, *options], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(folder))


@pytest.mark.requirement("clients.python")
@pytest.mark.parametrize("user", USER_NAMES)
def test_every_operation_arrives_without_loss(generated: Generated, demo: Any, calls_of: Any, user: str) -> None:
    client = generated("client").AuthenticatedClient(base_url=demo.base_url, token=demo.token(user))
    statuses = {}
    with client:
        for call in calls_of(user):
            operation = generated(f"api.{call.tag.lower()}.{snake(call.operation_id)}")
            arguments = dict(typed(generated, name, value) for name, value in call.arguments.items())
            answer = operation.sync_detailed(client=client, **arguments)
            if call.operation_id == "exportTransactions" and answer.status_code == 200:
                assert answer.parsed.payload.read().startswith(b"record,account,iban,")
            else:
                assert normal(answer.parsed.to_dict()) == normal(json.loads(answer.content)), call.operation_id
            statuses[call.operation_id] = int(answer.status_code)
    assert statuses == expected_statuses(user, statuses)


def expected_statuses(user: str, operations: Any) -> dict[str, int]:
    """Somebody with data gets them, but for what is for this server's own page alone."""
    if user == "lapsed":
        return dict.fromkeys(operations, 403)
    missing = {"startSync", "getSyncJob", "getTransaction", "explainTransaction", "getSubscription"}
    others = dict.fromkeys(missing, 404) if user == "empty" else {"startSync": 202}
    return {name: others.get(name, 200) for name in operations} | dict.fromkeys(OF_THE_PAGE, 403)


def typed(generated: Generated, name: str, value: str) -> tuple[str, Any]:
    """The generated function takes an enumeration, not its text, and calls nothing as Python does."""
    if name == "format":
        return "format_", generated("models").ExportFormat(value)
    return snake(name), generated("models").Category(value) if name == "category" else value


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def normal(body: Any) -> Any:
    """JSON with date-times as moments: the client writes +00:00 where the service writes Z."""
    if isinstance(body, dict):
        return {name: normal(value) for name, value in body.items()}
    if isinstance(body, list):
        return [normal(value) for value in body]
    if isinstance(body, str) and DATE_TIME.fullmatch(body):
        return datetime.fromisoformat(body)
    return body
