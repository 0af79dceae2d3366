"""Alert rules and dashboard of docs/deploy: Prometheus itself evaluates them, over figures that the service has."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.conftest import Served

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
RULES, EXAMPLES = DEPLOY / "alerts.yaml", Path(__file__).with_name("alerts.yaml")
NAME = re.compile(r"\b(?:bankdata|process)_[a-z_]+|\bup\b")
LINES = {"Memory": 2, "Imports, and requests to banks": 2}  # of a panel over one machine; all others draw one

pytestmark = pytest.mark.requirement("monitoring.kit")


def queries() -> list[tuple[str, str]]:
    """The title of a panel with a query of it, for each query of the dashboard."""
    panels: list[dict[str, Any]] = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here: apt install prometheus")
@pytest.mark.long
def test_each_alert_fires_on_what_it_is_about_and_none_on_a_quiet_day(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / RULES.name)
    shutil.copy(EXAMPLES, tmp_path / "examples.yaml")
    for command in (["check", "rules", RULES.name], ["test", "rules", "examples.yaml"]):
        done = subprocess.run(
            ["promtool", *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here: apt install prometheus")
def test_every_panel_draws_each_figure_that_it_is_about(tmp_path: Path) -> None:
    """Of two figures joined by "or" Prometheus tells the first alone, for both have the same labels."""
    titles = [title for title, _ in queries()]
    assert {title: titles.count(title) for title in titles} == {**dict.fromkeys(titles, 1), **LINES}
    labels, names = (
        'job="bankdata", instance="a", operation="listAccounts", le="+Inf"',
        set(NAME.findall(str(queries()))),
    )
    one = [{"labels": "{}", "value": 1}]
    asked = [{"expr": f"count({query})", "eval_time": "2h", "exp_samples": one} for _, query in queries()]
    tests = [
        {
            "interval": "1m",
            "input_series": [
                {"series": f'{name}{{{labels}, status="{status}"}}', "values": "1+60x120"} for name in names
            ],
            "promql_expr_test": asked,
        }
        for status in ("503", "200")
    ]
    (tmp_path / "panels.yaml").write_text(json.dumps({"tests": tests}), "utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", tmp_path / "panels.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_and_panels_ask_for_figures_that_the_service_tells(service: Served) -> None:
    told = set(
        re.findall(
            r"^([a-z_]+)", httpx.get(f"{service.address}/metrics", timeout=60, trust_env=False).text, re.MULTILINE
        )
    )
    asked = set(NAME.findall(RULES.read_text("utf-8")))
    asked |= {name for _, query in queries() for name in NAME.findall(query)}
    assert len(asked) > 10
    asked -= {"up"}  # that Prometheus tells itself
    over_postgresql = {"bankdata_archive_failing", "bankdata_wal_kept_bytes"}
    assert asked - told <= over_postgresql | {"bankdata_backup_timestamp_seconds", "bankdata_disk_free_bytes"}


def test_each_alert_says_what_to_do() -> None:
    _, *rules = RULES.read_text("utf-8").split("- alert: ")
    for rule in rules:
        assert re.search(r"^ +action: [A-Z].{20,}\.$", rule, re.MULTILINE), rule
