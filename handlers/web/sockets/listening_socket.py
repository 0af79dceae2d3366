"""Opens the server's socket before anything else starts, so that a port in use is reported at once, in one sentence."""

import errno
import os
import socket

from handlers.web.sockets.connection_limits import BACKLOG, SEND_BUFFER_BYTES


class CannotListen(Exception):
    """The address cannot be listened on; the message says why and what helps."""


def listening_socket(host: str, port: int) -> socket.socket:
    """An open socket that already listens, so that early clients wait instead of being refused; raises CannotListen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"{host!r} is no address of this machine. Try --host 127.0.0.1.") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # connections inherit it
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(reason(error, host, port)) from error
    return listener


def reason(error: OSError, host: str, port: int) -> str:
    """A sentence on why the system refused the address, and what helps."""
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} of {host} is in use. Choose another with --port, or stop what listens there."
        case errno.EACCES | errno.EPERM:
            return f"Port {port} is reserved for the administrator. Choose one above 1023 with --port."
        case errno.EADDRNOTAVAIL:
            return f"{host!r} is no address of this machine. Try --host 127.0.0.1."
    return f"{host} port {port} cannot be listened on: {os.strerror(error.errno or 0)}."
