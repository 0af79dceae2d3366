"""Asks the advisory database about every package that runs in the service, and says honestly what was not answered.

pip-audit ends with success when it could ask about nothing, as where only a mirror of packages is reachable. What it
was not told about is compared with the advisories that are stored in advisories.json, and reported as NOT AUDITED all
the same: with --strict that is a failure. A known vulnerability always is one. `--refresh` collects the stored set
anew, where the database can be reached.
"""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.package.advisories import Advisories, refresh, stored

LOCK = Path(__file__).resolve().parents[2] / ".ci" / "runtime.lock"
JUDGED = {
    # Disputed by its maintainer, without a release that mends it: whoever signs with short secrets is not stopped. Our
    # tokens are RS256 only, with keys of 2,048 bits that we make (docs/security.md).
    "PYSEC-2025-183": "short secrets of HS256, which we do not use",
}


def main() -> int:
    """The exit code: 1 for a known vulnerability, under --strict also for a package that could not be audited."""
    packages = asked()
    if "--refresh" in sys.argv:
        count = refresh(sorted({each["name"] for each in packages}), datetime.now(UTC).date())
        print(f"stored {count} advisories")
    lines, is_vulnerable, is_incomplete = report(packages, locked(), stored())
    print("\n".join(lines))
    return int(is_vulnerable or (is_incomplete and "--strict" in sys.argv))


def asked() -> list[dict[str, Any]]:
    """The packages of the lock as pip-audit tells of them: name, version and vulnerabilities, or why it skipped one;
    all of them where it ends without an answer, as where nothing but a mirror can be reached."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip_audit",
            "--require-hashes",
            "--disable-pip",
            "--progress-spinner=off",
            "-f",
            "json",
            "-r",
            str(LOCK),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        reason = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        return [{"name": name, "skip_reason": reason} for name in locked()]
    return told


def locked() -> dict[str, list[str]]:
    """The packages of the lock, each with its version, or with several, for several versions of Python."""
    found: dict[str, list[str]] = {}
    for line in re.finditer(r"^([a-z0-9-]+)==(\S+)", LOCK.read_text(), re.MULTILINE):
        found.setdefault(line[1], []).append(line[2])
    return found


def report(
    packages: list[dict[str, Any]], versions: dict[str, list[str]], known: Advisories
) -> tuple[list[str], bool, bool]:
    """What to say, whether there is a vulnerability, and whether nobody could be asked about some package."""
    skipped = [package for package in packages if "skip_reason" in package]
    told = [
        (package["name"], package["version"], each["id"], f"fixed in {', '.join(each['fix_versions']) or 'none yet'}")
        for package in packages
        for each in package.get("vulns", ())
    ]
    told += [
        (package["name"], version, each.id, "as stored")
        for package in skipped
        for version in versions[package["name"]]
        for each in known.of(package["name"], version)
    ]
    lines = []
    for name, version, advisory, remark in told:
        judged = f"judged: {JUDGED[advisory]}" if advisory in JUDGED else ""
        lines.append(f"{'not concerned' if judged else 'VULNERABLE'}: {name} {version}: {advisory}, {judged or remark}")
    found = sum(advisory not in JUDGED for *_, advisory, _ in told)
    lines.append(f"audited {len(packages) - len(skipped)} of {len(packages)} packages, {found} known vulnerabilities")
    if skipped:
        compared = {each.package for each in known.entries} & {each["name"] for each in skipped}
        lines += [
            f"NOT AUDITED: {len(skipped)} packages, for the advisory database did not know or did not answer",
            f"instead, {len(compared)} of them were compared with the {len(known.entries)} advisories that were stored"
            f" on {known.collected} ({known.origin})",
        ]
    return lines, bool(found), bool(skipped)


if __name__ == "__main__":
    raise SystemExit(main())
