"""The client of the sending process: it starts the process, passes requests to it and reads the outcomes."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from connectors.public_addresses import Network

_BEGIN = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from connectors.webhooks.process import main; main()"
_KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")  # from the environment, the rest of which may have secrets
END_SECONDS = 2.0
READ_BYTES = 1 << 16


class SendingProcessGone(Exception):
    """The process has ended; what was on its way has to be sent again."""


class SendingProcess:
    """The process that sends to webhooks, for use by one thread. `close` it after use."""

    def __init__(self, allowed: Iterable[Network]) -> None:
        """Start the process; it may connect to the `allowed` networks besides public addresses."""
        networks = json.dumps([str(network) for network in allowed])
        self._process = subprocess.Popen(  # noqa: S603 - this program itself
            [sys.executable, "-c", _BEGIN, json.dumps(sys.path), networks],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._answers = select.poll()  # select() cannot handle file numbers above 1023, and each open stream has one
        self._answers.register(self._process.stdout, select.POLLIN)
        self._rest = b""

    def send(self, request: Mapping[str, Any]) -> None:
        """Pass a request to the process, which begins to send it at once: its id, url, headers, body (`base64`: of
        bytes), and the seconds that it may take. Raises SendingProcessGone."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SendingProcessGone from error

    def outcomes(self, *, within: float) -> Sequence[Mapping[str, Any]]:
        """The outcomes of requests, each with the id of its request (`process.outcome_of`), as soon as there is one;
        empty after `within` seconds. Raises SendingProcessGone."""
        assert self._process.stdout is not None
        if not self._answers.poll(within * 1000):
            return []
        read = os.read(self._process.stdout.fileno(), READ_BYTES)
        if not read:
            raise SendingProcessGone
        *lines, self._rest = (self._rest + read).split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """End the process, which gives up the requests under way."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
