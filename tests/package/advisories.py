"""The advisories that are stored with the project, in the form of OSV: for where no advisory database can be asked."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import httpx
from packaging.version import Version

STORED = Path(__file__).with_name("advisories.json")
DATABASE = "https://api.osv.dev/v1/query"


@dataclass(frozen=True, slots=True)
class Advisory:
    """What is known of one hole in one package: half-open ranges of versions, without an end where it is not mended."""

    id: str
    package: str
    ranges: tuple[tuple[Version, Version | None], ...]

    def concerns(self, version: Version) -> bool:
        """Whether this version has the hole."""
        return any(begin <= version and (end is None or version < end) for begin, end in self.ranges)


@dataclass(frozen=True, slots=True)
class Advisories:
    """A set of them, with the day on which and the place from which it was collected."""

    collected: date
    origin: str
    entries: tuple[Advisory, ...]

    def of(self, package: str, version: str) -> list[Advisory]:
        """Those that concern a version of a package."""
        return [each for each in self.entries if each.package == package and each.concerns(Version(version))]


def stored(path: Path = STORED) -> Advisories:
    """The set of a file."""
    told = json.loads(path.read_text())
    entries = tuple(each for entry in told["advisories"] for each in _read(entry))
    return Advisories(date.fromisoformat(told["collected"]), told["from"], entries)


def refresh(packages: Iterable[str], today: date, *, path: Path = STORED, database: str = DATABASE) -> int:
    """Ask the database about all packages and store what it answers; how many advisories. Raises httpx.HTTPError."""
    lines = []
    with httpx.Client(timeout=60) as client:
        for package in packages:
            token = None
            while True:
                asked = {"package": {"ecosystem": "PyPI", "name": package}, **({"page_token": token} if token else {})}
                answer = client.post(database, json=asked).raise_for_status().json()
                lines += [json.dumps(_kept(entry, package)) for entry in answer.get("vulns", ()) if _is_valid(entry)]
                token = answer.get("next_page_token")
                if not token:
                    break
    told = {"collected": today.isoformat(), "from": database}
    head = json.dumps(told, indent=0).removesuffix("\n}")
    path.write_text(head + ',\n"advisories": [\n' + ",\n".join(lines) + "\n]}\n")
    return len(lines)


def _is_valid(entry: Mapping[str, Any]) -> bool:
    return "withdrawn" not in entry


def _kept(entry: Mapping[str, Any], package: str) -> dict[str, Any]:
    """What a comparison needs of an advisory: no prose."""
    affected = [
        {"package": each["package"], "ranges": each.get("ranges", [])}
        for each in entry["affected"]
        if each["package"]["name"].lower() == package
    ]
    return {"id": entry["id"], "aliases": entry.get("aliases", []), "affected": affected}


def _read(entry: Mapping[str, Any]) -> Iterator[Advisory]:
    for affected in entry["affected"]:
        found: list[tuple[Version, Version | None]] = []
        for each in affected["ranges"]:
            if each["type"] != "ECOSYSTEM":
                continue  # commits of a repository
            begin: Version | None = None
            for event in each["events"]:
                if "introduced" in event:
                    begin = Version(event["introduced"])
                elif "fixed" in event and begin is not None:
                    found.append((begin, Version(event["fixed"])))
                    begin = None
            if begin is not None:
                found.append((begin, None))
        yield Advisory(entry["id"], affected["package"]["name"].lower(), tuple(found))
