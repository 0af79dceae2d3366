"""Schemathesis with every check over a running demo: `python tests/contract/fuzz.py [--examples N] [--only RUN ...]`.

Each run is one user; the other one is the peer who must not see the first one's objects. The gate has the runs that
reach every operation, few examples each; `--examples 2000` is the overnight form. The exit code says whether anything
was found.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.contract.demo_server import SCOPES, WRITING, Demo, running_demo

ROOT = Path(__file__).parents[2]
COMMON = ROOT / "tests" / "contract" / "schemathesis.toml"
EXAMPLES = 20
PEERS = ("solo", "demo")  # one account; four accounts at two banks
KNOWN_ID_SHARE = 0.6  # of the ids in paths; the others are invented, and 404

# a window may be inverted (decision 5), which a schema cannot say
INVERTED_WINDOWS = ("listTransactions", "searchTransactions", "sumTransactions", "exportTransactions", "getBalances")
WITH_CURSOR = ("listTransactionChanges", "listAccountChanges", "listNotices")  # their cursors cannot be invented
LISTING = ("explainTransaction",)  # what `include` names has to be of a list
OWN_RULES = WITH_CURSOR + LISTING
ONE_AT_A_TIME = "startSync"  # 429 while a job runs, which may be for most of a run

ENDLESS = ("listenToEvents",)
OF_THE_PAGE = (
    "listShares",
    "getNoticeSettings",
    "listNoticeTargets",
    "listNoticeDeliveries",
    "getPushKey",
)  # alone, whose tokens no command makes


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table at the end."""

    name: str
    cases: int
    seconds: float
    problems: str


def main() -> int:
    """Every run, then the table; 1 if any of them found something."""
    arguments = _arguments()
    with TemporaryDirectory(prefix="bankdata-fuzz-") as name:
        outcomes = list(outcomes_of(Path(name), arguments.examples, arguments.only))
    print(f"\n{'run':<36}{'requests':>10}{'seconds':>10}  found")
    for each in outcomes:
        print(f"{each.name:<36}{each.cases:>10}{each.seconds:>10.1f}  {each.problems or '-'}")
    return 1 if any(each.problems for each in outcomes) else 0


def outcomes_of(folder: Path, examples: int, only: Sequence[str]) -> Iterator[Outcome]:
    """Three servers over one store: nothing limits the first, the second cools down, the third counts requests."""
    with running_demo(folder, RATE_LIMIT="off", SYNC_COOLDOWN_SECONDS="0") as demo:
        for run in all_runs(demo, folder):
            if not only or any(part in run.name for part in only):
                yield perform(run, folder, examples)
    with running_demo(folder, RATE_LIMIT="off") as demo:
        if not only or "cool-down" in only:
            yield _timed("cool-down: POST /sync is 429", lambda: cool_down(demo, folder))
    with running_demo(folder) as demo:
        if not only or "rate limit" in only:
            yield _timed("rate limit: 60 a minute", lambda: rate_limit(demo))


@dataclass(frozen=True, slots=True)
class Run:
    """One run of Schemathesis: what it reads, and what is special about its configuration."""

    name: str
    description: str
    url: str
    configuration: str
    share: float = 1.0  # of the examples
    must_succeed: bool = True  # every operation answers 2xx at least once
    options: tuple[str, ...] = ()


def all_runs(demo: Demo, folder: Path) -> Iterator[Run]:
    """Users alone and as peers, real and invented accounts, both descriptions."""
    description = _document(f"{demo.origin}/api/openapi.json")
    tokens = {user: demo.token(user) for user in (*PEERS, "globe")}
    writing = writing_operations(description)
    # addresses and the order of calls are no schema's: tests/webhooks
    webhooks = (name for name, (path, *_) in _operations(description) if path.startswith("/webhooks"))
    left_out = (*writing, *ENDLESS, *OF_THE_PAGE, *webhooks)
    wfc = folder / "peers.json"
    wfc.write_text(json.dumps({"auth": [_identity(user, tokens[user]) for user in PEERS]}))

    def strict(user: str, name: str) -> Run:
        accounts = ",".join(each["id"] for each in demo.read("/accounts", tokens[user])["accounts"])
        ids = known_ids(demo, tokens[user], accounts)
        auth = _peers(wfc, user) if user in PEERS else _bearer(tokens[user])
        text = (
            auth
            + _only(accounts)
            + dictionaries(ids)
            + operations(description, ids, INVERTED_WINDOWS + OWN_RULES)
            + WARNINGS
        )
        return Run(name, f"{demo.origin}/api/openapi.json", demo.base_url, text, options=_without(left_out))

    yield strict("solo", "solo: one account; peer demo")
    yield strict("demo", "demo: all accounts; peer solo")
    yield strict("globe", "globe: four currencies")

    # invented accounts are refused (decision 6), which positive_data_acceptance would call a finding
    solo = demo.read("/accounts", tokens["solo"])["accounts"][0]["id"]
    ids = known_ids(demo, tokens["solo"], solo)
    taking = tuple(name for name, parts in _operations(description) if "query.accountIds" in parts)
    invented = dictionaries(ids) + operations(description, ids, taking + OWN_RULES)
    yield Run(
        "solo: invented accounts",
        f"{demo.origin}/api/openapi.json",
        demo.base_url,
        _peers(wfc, "solo") + invented + "\n[warnings]\nenabled = false\n",
        options=_without(left_out),
    )

    # ignored_auth looks at http schemes only
    bearer = folder / "bearer.json"
    bearer.write_text(json.dumps(with_bearer(description)))
    text = _only(solo) + dictionaries(ids) + operations(description, ids, INVERTED_WINDOWS + OWN_RULES) + WARNINGS
    demo.finished_sync(tokens["solo"])  # the run before may have left one running
    auth = f'\n[auth.openapi.oauth2]\nbearer = "{tokens["solo"]}"\n'
    options = _without(left_out)
    yield Run(
        "solo: authentication as http bearer", str(bearer), demo.base_url, auth + text, share=0.25, options=options
    )

    # last: it deletes and renames what it finds. What is invented is mostly unknown, and a rule is no schema's
    yield Run(
        "globe: writing",
        f"{demo.origin}/api/openapi.json",
        demo.base_url,
        _bearer(demo.token("globe", f"{SCOPES} {WRITING}"))
        + operations(description, {}, writing)
        + "\n[warnings]\nenabled = false\n",
        must_succeed=False,
        options=tuple(word for name in writing for word in ("--include-operation-id", name)),
    )

    yield Run(
        "oauth: the second description",
        str(ROOT / "handlers" / "oauth" / "oauth-api.json"),
        f"{demo.origin}/",
        OAUTH,
        must_succeed=False,  # codes and refresh tokens cannot be invented
    )


def writing_operations(description: Mapping[str, Any]) -> tuple[str, ...]:
    """Ids of the operations that no app's token reaches: those that change something, and what a person has noted."""
    return tuple(
        operation["operationId"]
        for path in description["paths"].values()
        for operation in path.values()
        if any(scope not in SCOPES.split() for asked in operation["security"] for scope in asked["oauth2"])
    )


def _without(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--exclude-operation-id", name))


WARNINGS = "\n[warnings]\nfail-on = true\n"

# RFC 7591 section 3.2.2 and RFC 6749 section 3.2 refuse metadata and repeated fields that a loose schema allows
OAUTH = """
[warnings]
display = ["missing_auth"]
fail-on = true

[[operations]]
include-operation-id = ["registerClient", "revokeToken"]

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "401", "403", "429"]

# A value beyond its maxLength may make the body larger than 64 KB
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx"]
"""


def perform(run: Run, folder: Path, examples: int) -> Outcome:
    """Schemathesis as a command; its own words only where it found something."""
    began = time.monotonic()
    report, code, words = schemathesis(run, folder, max(5, round(examples * run.share)), *run.options)
    problems = [] if code == 0 else [f"exit code {code}, see above"]
    if run.must_succeed and report is not None:
        problems += [f"no 2xx: {name}" for name in never_accepted(report)]
    if problems:
        print(f"\n==== {run.name}\n{words}", flush=True)
    cases = report["test_cases"]["generated"] if report else 0
    return Outcome(run.name, cases, time.monotonic() - began, "; ".join(problems))


def schemathesis(run: Run, folder: Path, examples: int, *more: str) -> tuple[dict[str, Any] | None, int, str]:
    """Its JSON report (None if it did not come to that), its exit code and its output."""
    path = folder / "report.json"
    path.unlink(missing_ok=True)
    configuration = folder / "schemathesis.toml"
    configuration.write_text(f"{COMMON.read_text()}{run.configuration}\n[reports.json]\npath = '{path}'\n")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration), "run", run.description]
    options = ["--url", run.url, "--checks", "all", "--max-examples", str(examples), *more]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    report = json.loads(path.read_bytes()) if path.exists() else None
    return report, done.returncode, done.stdout + done.stderr


def never_accepted(report: Mapping[str, Any]) -> list[str]:
    """Operations whose handlers never said yes: whatever they do then, nobody looked at it."""
    rates = report["valid_rates"]
    return [name for name, phases in rates.items() if not any(each["accepted"] for each in phases.values())]


def known_ids(demo: Demo, token: str, accounts: str) -> dict[str, str]:
    """For every parameter of a path, by the beginning of that path, a value that exists for this user."""
    chosen = f"?accountIds={accounts}"
    job = demo.finished_sync(token)
    found = {
        "/transactions/{id}": demo.read(f"/transactions{chosen}", token)["transactions"][0]["id"],
        "/sync/{syncId}": job,
        "/cashflow/{month}": demo.read(f"/cashflow{chosen}", token)["cashflow"][-1]["month"],
        "/snapshot/categories/{category}": _first(
            demo.read(f"/snapshot{chosen}", token)["last30Days"]["topCategories"], "category"
        ),
        "/subscriptions/{id}": _first(demo.read(f"/subscriptions/details{chosen}", token)["subscriptions"], "id"),
    }
    return {path: value for path, value in found.items() if value is not None}


def dictionaries(ids: Mapping[str, str]) -> str:
    """The known values, under names."""
    return "\n[dictionaries]\n" + "".join(
        f'{_name(path)} = {{ values = ["{value}"] }}\n' for path, value in ids.items()
    )


def operations(description: Mapping[str, Any], ids: Mapping[str, str], refusing: tuple[str, ...]) -> str:
    """Per operation: known ids for its path, and 400 as an answer to valid data where a rule is no schema's."""
    sections = []
    for name, parts in _operations(description):
        known = [
            f'"path.{part.removeprefix("path.")}" = {{ dictionary = "{_name(path)}", probability = {KNOWN_ID_SHARE} }}'
            for part in parts
            if part.startswith("path.")
            for path in ids
            if parts[0].startswith(path)
        ]
        section = f'\n[[operations]]\ninclude-operation-id = "{name}"\n'
        if known:
            section += "\n[operations.parameters]\n" + "\n".join(known) + "\n"
        if name in refusing:
            statuses = '["2xx", "400", "401", "403", "404", "409", "429"]'
            section += f"\n[operations.checks.positive_data_acceptance]\nexpected-statuses = {statuses}\n"
        if name == ONE_AT_A_TIME:
            section += "\n[operations.warnings]\nenabled = false\n"
        if known or name in refusing or name == ONE_AT_A_TIME:
            sections.append(section)
    return "".join(sections)


def with_bearer(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description with its tokens as plain bearer authentication."""
    copy: dict[str, Any] = json.loads(json.dumps(description))
    copy["components"]["securitySchemes"]["oauth2"] = {"type": "http", "scheme": "bearer"}
    for path in copy["paths"].values():
        for operation in path.values():
            operation["security"] = [{"oauth2": []}]
    return copy


def cool_down(demo: Demo, folder: Path) -> tuple[int, str]:
    """After a sync, POST /sync is the documented 429 until the 30 minutes are over (decision 25)."""
    token = demo.token("solo")
    demo.finished_sync(token)
    answer = demo.call("POST", "/sync", token)
    if answer.status != 429 or not 1 <= int(answer.headers["retry-after"]) <= 1800:
        return 1, f"POST /sync answered {answer.status} {answer.headers}"
    run = Run("cool-down", f"{demo.origin}/api/openapi.json", demo.base_url, _bearer(token))
    only = ("--include-operation-id", "startSync", "--phases", "examples,coverage,fuzzing", "--warnings", "off")
    report, code, words = schemathesis(run, folder, 10, *only)
    if code != 0 or report is None:
        print(words)
        return 1, f"exit code {code}, see above"
    return 1 + int(report["test_cases"]["generated"]), ""


def rate_limit(demo: Demo) -> tuple[int, str]:
    """Interface 8: the 61st request of a minute is refused; reading a job has a budget of its own (decision 32)."""
    token = demo.token("solo")
    answers = [demo.call("GET", "/accounts", token) for _ in range(61)]
    left = [int(re.findall(r";r=(\d+)", each.headers["ratelimit"])[0]) for each in answers]
    policies = {each.headers["ratelimit-policy"] for each in answers}
    last = answers[-1]
    problems = []
    if [each.status for each in answers] != [200] * 60 + [429] or last.body != {"error": "Rate limit exceeded"}:
        problems.append(f"statuses {[each.status for each in answers]}, last body {last.body}")
    if left != [*range(59, -1, -1), 0] or policies != {'"default";q=60;w=60'}:
        problems.append(f"RateLimit headers {left}, {policies}")
    if not 1 <= int(last.headers["retry-after"]) <= 60:
        problems.append(f"Retry-After {last.headers['retry-after']}")
    if (unlimited := demo.call("GET", "/sync/syn_unknown", token)).status != 404:
        problems.append(f"GET /sync/{{syncId}} is {unlimited.status}")
    return len(answers) + 1, "; ".join(problems)


def _timed(name: str, check: Callable[[], tuple[int, str]]) -> Outcome:
    began = time.monotonic()
    cases, problems = check()
    return Outcome(name, cases, time.monotonic() - began, problems)


def _operations(description: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The id of every operation; its path, then its parameters as `path.id`, `query.page`."""
    shared = description["components"]["parameters"]
    for path, methods in description["paths"].items():
        for operation in methods.values():
            given = [
                shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
                for each in operation.get("parameters", [])
            ]
            yield operation["operationId"], [path, *(f"{each['in']}.{each['name']}" for each in given)]


def _document(address: str) -> dict[str, Any]:
    from urllib.request import urlopen

    with urlopen(address, timeout=30) as response:
        document: dict[str, Any] = json.load(response)
        return document


def _first(items: list[dict[str, Any]], field: str) -> str | None:
    return str(items[0][field]) if items else None


def _name(path: str) -> str:
    return re.sub(r"\W+", "-", path).strip("-")


def _identity(user: str, token: str) -> dict[str, Any]:
    return {"name": user, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {token}"}]}


def _peers(wfc: Path, user: str) -> str:
    return f"\n[auth.wfc]\npath = '{wfc}'\nuser = \"{user}\"\npeers = {json.dumps(PEERS)}\n"


def _only(accounts: str) -> str:
    """A plain value: a dictionary would not reach the coverage phase."""
    return f'\n[parameters]\n"query.accountIds" = "{accounts}"\n'


def _bearer(token: str) -> str:
    return f'\n[headers]\nAuthorization = "Bearer {token}"\n'


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=EXAMPLES, help=f"per operation and phase (default {EXAMPLES})")
    parser.add_argument("--only", action="append", default=[], help="runs whose name contains this; may be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
