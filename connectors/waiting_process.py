"""A process that waits with everything loaded, and forks for each request: what a hostile file or address does to the
fork ends with it.

The process is started when it is first needed, with an empty environment, and ends when nobody has asked for five
minutes. A request is the descriptors that it is about.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from connectors.limits import END_SECONDS, IDLE_SECONDS_MAX

_KEPT = ("TMPDIR", "LD_LIBRARY_PATH")  # from the environment, the rest of which may have secrets
_DESCRIPTORS_MAX = 3
_ATTEMPTS = 2


class WaitingProcess:
    """The process that runs `main` of a module, which calls `fork_for_requests`. Safe to use from any thread."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        """Prepare to start it, with these variables in its environment."""
        self._begin = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main()"
        self._environment = environment or {}
        self._lock = Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.end)

    def send(self, descriptors: Sequence[int]) -> None:
        """Pass the descriptors of one request to the process; one that has ended is replaced. Of a process that ends as
        it starts, the caller gets no answer."""
        with self._lock:
            for _ in range(_ATTEMPTS):
                if self._control is None or self._process is None or self._process.poll() is not None:
                    self._start()
                assert self._control is not None, "started"
                try:
                    socket.send_fds(self._control, [b"."], descriptors)
                except ConnectionError:  # it has ended since, perhaps with a request that it had not read
                    self.end()
                else:
                    return

    def end(self) -> None:
        """End the process; the next request starts another one."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._control = self._process = None

    def _start(self) -> None:
        self.end()
        self._control, other = socket.socketpair()
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        with other:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and words
                [sys.executable, "-P", "-c", self._begin, json.dumps(sys.path)],
                stdin=other.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**kept, **self._environment},
                start_new_session=True,  # an interrupt at the terminal is for the command, which then ends the process
            )


def fork_for_requests(attend: Callable[..., None]) -> None:  # pragma: no cover - in a process of its own
    """Call `attend` with the descriptors of each request that comes over standard input, which is a socket, in a fork;
    return when its other end is closed, or no request has come for five minutes. Load everything before."""
    with socket.socket(fileno=os.dup(0)) as control:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        control.settimeout(IDLE_SECONDS_MAX)
        gc.freeze()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the forks ended
        while True:
            try:
                said, descriptors, *_ = socket.recv_fds(control, 1, _DESCRIPTORS_MAX)
            except TimeoutError:
                return
            if not said:
                return
            if not os.fork():
                try:
                    control.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    attend(*descriptors)
                finally:
                    os._exit(0)
            for descriptor in descriptors:
                os.close(descriptor)
