"""The socket of the server: why it cannot be had, in one sentence that says what helps."""

import errno
import socket

import pytest

from handlers.web.sockets.listening_socket import CannotListen, listening_socket, reason


@pytest.mark.requirement("serve.port")
@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EADDRINUSE, "Port 80 of ::1 is in use. Choose another with --port, or stop what listens there."),
        (errno.EACCES, "Port 80 is reserved for the administrator. Choose one above 1023 with --port."),
        (errno.EPERM, "Port 80 is reserved for the administrator. Choose one above 1023 with --port."),
        (errno.EADDRNOTAVAIL, "'::1' is no address of this machine. Try --host 127.0.0.1."),
        (errno.EMFILE, "::1 port 80 cannot be listened on: Too many open files."),
    ],
)
def test_what_the_system_refuses_is_said_with_what_helps(number: int, sentence: str) -> None:
    assert reason(OSError(number, ""), "::1", 80) == sentence


@pytest.mark.requirement("serve.port")
def test_a_port_is_taken_once_and_is_free_again_afterwards() -> None:
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):  # nobody has accepted it yet
            pass
        with pytest.raises(CannotListen, match=rf"^Port {port} of 127\.0\.0\.1 is in use\. "):
            listening_socket("127.0.0.1", port)
    listening_socket("127.0.0.1", port).close()


@pytest.mark.requirement("serve.port")
def test_what_is_no_address_is_said_before_a_socket_is_made() -> None:
    with pytest.raises(CannotListen, match=r"^'no such host' is no address of this machine\."):
        listening_socket("no such host", 0)
