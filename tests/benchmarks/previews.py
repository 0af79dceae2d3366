"""What a preview of one line waits for while somebody else tries large files.

    python -m tests.benchmarks.previews [--megabytes 1.5] [--files 4]

starts a server with two users. One sends so many CSV files of this size as previews, all at once; a second later the
other one sends a statement of one booking, again and again until the large ones have ended. Prints how long it took
alone, how long beside them, and how long they took.
"""

import argparse
import threading
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import httpx

from tests.service.conftest import Served, running

PASSWORD = "Regenturm-4711-quer"
HEAD = "Buchungstag;Valuta;Auftraggeber/Empfänger;Verwendungszweck;Betrag;Währung;IBAN\n"
ROW = "17.{month:02}.2026;17.{month:02}.2026;Stadtwerke {i};Abschlag Vertrag {i};-{i},99;EUR;DE02120300000000202051\n"


def csv(size: int) -> str:
    """A statement of about so many bytes."""
    rows, length = [HEAD], len(HEAD)
    while length < size:
        rows.append(ROW.format(month=1 + len(rows) % 10, i=len(rows)))
        length += len(rows[-1])
    return "".join(rows)


def preview(server: Served, token: str, content: str) -> float:
    """The seconds until it is known what would come of the file."""
    began = time.perf_counter()
    with httpx.Client(base_url=server.base_url, headers={"authorization": f"Bearer {token}"}, timeout=600) as client:
        answer = client.post(
            "/imports",
            params={"filename": "a.csv", "dryRun": "true"},
            content=content.encode(),
            headers={"content-type": "application/octet-stream"},
        )
        while answer.json()["status"] == "running":
            answer = client.get(f"/imports/{answer.json()['importId']}")
    assert answer.json()["error"] is None, answer.text
    return time.perf_counter() - began


def measure(megabytes: float, files: int) -> None:
    """Prints the figures."""
    large, one = csv(int(megabytes * 1_000_000)), HEAD + ROW.format(month=1, i=1)
    with TemporaryDirectory() as parent, running(Path(parent) / "data", command="serve") as server:
        for name in ("eva", "max"):
            server.command("users add", name=name, password=PASSWORD, is_generated=False, has_subscription=True)
        eva, other = (server.token(name, "read:accounts write:imports", 86_400) for name in ("eva", "max"))
        preview(server, other, one)  # starts the process that parses
        alone = [preview(server, other, one) for _ in range(5)]
        print(f"one line alone: median {median(alone):.2f} s")
        took: list[float] = []
        sending = [threading.Thread(target=lambda: took.append(preview(server, eva, large))) for _ in range(files)]
        for each in sending:
            each.start()
        time.sleep(1)
        beside = []
        while any(each.is_alive() for each in sending):
            beside.append(preview(server, other, one))
        for each in sending:
            each.join()
    print(f"one line beside {files} of {megabytes} MB: median {median(beside):.2f} s, most {max(beside):.2f} s")
    print(f"the large ones: {', '.join(f'{each:.1f}' for each in sorted(took))} s")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=1.5)
    parser.add_argument("--files", type=int, default=4)
    given = parser.parse_args()
    measure(given.megabytes, given.files)


if __name__ == "__main__":
    main()
