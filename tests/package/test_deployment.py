"""The units of docs/deploy: systemd itself says that they are well-formed, and how little they may do."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
UNITS = [
    "bankdata.service",
    "bankdata-backup.service",
    "bankdata-backup.timer",
    "bankdata-base-backup.service",
    "bankdata-base-backup.timer",
]

pytestmark = [
    pytest.mark.requirement("deploy.units"),
    pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here: apt install systemd"),
]


def analyzed(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("unit", "tenths"),
    [("bankdata.service", 20), ("bankdata-backup.service", 20), ("bankdata-base-backup.service", 20)],
)
def test_a_unit_may_do_little(unit: str, tenths: int) -> None:
    found = analyzed("security", "--offline=true", f"--threshold={tenths}", DEPLOY / unit)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("name", ["bankdata.service", "company.conf"])
def test_the_memory_of_a_server_is_bounded(name: str) -> None:
    assert re.search(r"^MemoryMax=[1-9][0-9]*G$", (DEPLOY / name).read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("is_company", [False, True])
@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_well_formed(unit: str, is_company: bool, tmp_path: Path) -> None:
    (tmp_path / "bankdata.service.d").mkdir()
    for name in [*UNITS, "company.conf"] if is_company else UNITS:
        text = (DEPLOY / name).read_text("utf-8")
        text = re.sub(r"/opt/bankdata/\.venv/bin/bankdata", str(Path(sys.executable).with_name("bankdata")), text)
        (tmp_path / "bankdata.service.d" / name if name == "company.conf" else tmp_path / name).write_text(
            text, "utf-8"
        )
    found = analyzed("verify", tmp_path / unit)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_unit_with_a_misspelt_line_would_be_noticed(tmp_path: Path) -> None:
    unit = tmp_path / "bankdata.service"
    unit.write_text((DEPLOY / unit.name).read_text("utf-8").replace("ProtectSystem", "ProtectSytem"), "utf-8")
    assert "ProtectSytem" in analyzed("verify", unit).stderr
