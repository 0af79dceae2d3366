"""Asks the advisory database about every package that runs in the service, and says honestly what was not answered.

pip-audit ends with success when it could ask about nothing, as where only a mirror of packages is reachable. Here
that is a line NOT AUDITED, and with --strict a failure. A known vulnerability always is one.
"""

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / ".ci" / "runtime.lock"


def main() -> int:
    """The exit code: 1 for a known vulnerability, under --strict also for a package that could not be audited."""
    done = subprocess.run(
        ["pip-audit", "--require-hashes", "--disable-pip", "--progress-spinner=off", "-f", "json", "-r", str(LOCK)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except ValueError:
        print(f"NOT AUDITED: pip-audit gave no answer: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}")
        return int("--strict" in sys.argv)
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    known = [(package, found) for package in packages for found in package.get("vulns", ())]
    for package, found in known:
        fixed = ", ".join(found["fix_versions"]) or "none yet"
        print(f"VULNERABLE: {package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    print(f"audited {len(packages) - len(skipped)} of {len(packages)} packages, {len(known)} known vulnerabilities")
    if skipped:
        print(f"NOT AUDITED: {len(skipped)} packages, for the advisory database did not know or did not answer")
    return int(bool(known) or (bool(skipped) and "--strict" in sys.argv))


if __name__ == "__main__":
    raise SystemExit(main())
