"""An application under a real uvicorn on a socket of the test's own, until the block ends."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def running(app: Any, listener: socket.socket, **settings: Any) -> Iterator[None]:
    """Serve `app` from a thread to who connects to `listener`; `settings` are uvicorn's."""
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield
    server.should_exit = True
    thread.join(60)
