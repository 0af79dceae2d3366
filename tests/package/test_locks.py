"""The lock that users install from holds what the service needs, in the versions that the gate has tested."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


def lock(name: str) -> str:
    """The text of a lock with those that it includes in their place, as pip reads it."""
    text = (ROOT / ".ci" / name).read_text()
    return re.sub(r"^-r (\S+)$", lambda line: lock(line[1]), text, flags=re.MULTILINE)


def locked(name: str) -> dict[str, str]:
    """Package and version of each line, with its condition if it has one."""
    return {
        found[1]: found[2] for found in re.finditer(r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+)", lock(name), re.MULTILINE)
    }


@pytest.mark.requirement("package.locked")
def test_what_is_installed_by_hash_is_what_was_tested() -> None:
    assert locked("runtime.lock").items() <= locked("requirements.lock").items()


@pytest.mark.requirement("package.locked")
def test_the_gate_takes_what_users_install_from_the_same_lines() -> None:
    own = (ROOT / ".ci" / "requirements.lock").read_text()
    named = re.findall(r"^-r (\S+)$", own, re.MULTILINE)
    assert named == ["runtime.lock", "company.lock", "fints.lock", "notices.lock"]
    lines = re.findall(r"^[a-z0-9-]+.*==.*", lock("requirements.lock"), re.MULTILINE)
    assert len(lines) == len(set(lines))


@pytest.mark.requirement("package.locked")
def test_every_dependency_and_the_build_backend_are_locked_with_a_hash() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    names = {re.split(r"[^A-Za-z0-9-]", each)[0].lower() for each in needed}
    text = lock("runtime.lock")
    assert names <= locked("runtime.lock").keys()
    assert all("--hash=sha256:" in entry for entry in re.split(r"^(?=[a-z0-9-]+==)", text, flags=re.MULTILINE)[1:])


@pytest.mark.requirement("package.locked")
def test_a_package_that_another_one_asks_for_with_extras_is_locked_with_them() -> None:
    # pip before 23.3 keeps "coverage" and "coverage[toml]" apart and takes the newest of the second, which has no hash.
    text = lock("requirements.lock")
    installed = {canonicalize_name(each.name) for each in metadata.distributions()}
    for package in locked("requirements.lock").keys() & installed:
        for wanted in map(Requirement, metadata.requires(package) or []):
            if wanted.extras and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                extras = ",".join(sorted(wanted.extras))
                assert f"\n{canonicalize_name(wanted.name)}[{extras}]==" in text, f"{package} asks for {wanted}"


@pytest.mark.requirement("package.locked")
def test_what_a_company_installs_besides_is_locked_too() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    company, runtime = locked("company.lock"), locked("runtime.lock")
    assert company.items() <= locked("requirements.lock").items()
    assert not company.keys() & runtime.keys()
    assert {"psycopg[binary,pool]>=3.2"} == set(extras["postgres"])
    assert {"limits[redis]>=5.8"} == set(extras["redis"])
    assert {"async-timeout", "psycopg", "psycopg-binary", "psycopg-pool", "redis"} == company.keys()
    assert (ROOT / ".ci" / "company.lock").read_text().count("--hash=sha256:") >= len(company)


@pytest.mark.requirement("package.locked")
def test_what_fints_needs_besides_is_locked_too() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    fints, runtime = locked("fints.lock"), locked("runtime.lock")
    assert fints.items() <= locked("requirements.lock").items()
    assert not fints.keys() & runtime.keys()
    assert {"fints>=5.0.1,<5.1"} == set(extras["fints"])
    needed = {"bleach", "elementpath", "enum-tools", "fints", "mt-940", "pygments", "sepaxml"}
    assert needed | {"text-unidecode", "webencodings", "xmlschema"} == fints.keys()
    assert (ROOT / ".ci" / "fints.lock").read_text().count("--hash=sha256:") >= len(fints)


@pytest.mark.requirement("package.locked")
def test_what_apprise_needs_besides_is_locked_too() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    notices, runtime = locked("notices.lock"), locked("runtime.lock")
    assert notices.items() <= locked("requirements.lock").items()
    assert not notices.keys() & runtime.keys()
    assert {"apprise>=2.3,<2.4"} == set(extras["notices"])
    assert {"apprise", "markdown", "oauthlib", "requests-oauthlib"} == notices.keys()
    assert (ROOT / ".ci" / "notices.lock").read_text().count("--hash=sha256:") >= len(notices)
