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
NAME = re.compile(r"\b(?:bankdata|process)_[a-z_]+")

pytestmark = pytest.mark.requirement("monitoring.kit")


def panels() -> list[dict[str, Any]]:
    return list(json.loads((DEPLOY / "grafana.json").read_text("utf-8"))["panels"])


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here: apt install prometheus")
def test_each_alert_fires_on_what_it_is_about_and_none_on_a_quiet_day(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / RULES.name)
    shutil.copy(EXAMPLES, tmp_path / "examples.yaml")
    for command in (["check", "rules", RULES.name], ["test", "rules", "examples.yaml"]):
        done = subprocess.run(
            ["promtool", *command], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here: apt install prometheus")
def test_every_panel_asks_what_prometheus_understands(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{each['id']}", "expr": each["targets"][0]["expr"]} for each in panels()]
    (tmp_path / "panels.yaml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")
    done = subprocess.run(
        ["promtool", "check", "rules", tmp_path / "panels.yaml"],
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
    asked |= {name for each in panels() for name in NAME.findall(each["targets"][0]["expr"])}
    assert len(asked) > 10
    assert asked <= told


def test_each_alert_says_what_to_do() -> None:
    _, *rules = RULES.read_text("utf-8").split("- alert: ")
    for rule in rules:
        assert re.search(r"^ +action: [A-Z].{20,}\.$", rule, re.MULTILINE), rule
