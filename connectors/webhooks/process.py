"""The sending process: it reads finished requests, one line of JSON each, and writes their outcomes.

It has no store, no keys and no secrets. It resolves a name once, refuses it if any of its addresses is not allowed, and
connects to the very address that it checked, so that a name which changes a moment later leads nowhere else. It follows
no redirect, uses no proxy, and reads only the head of an answer.
"""

import asyncio
import base64
import http.client
import io
import ipaddress
import json
import os
import re
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from connectors.public_addresses import Address, Network, is_public, is_within

LINE_BYTES_MAX = 1 << 20
HEAD_BYTES_MAX = 1 << 15
LOOK_UPS_MAX = 256  # simultaneous look-ups, as many as requests: slow ones delay no others
WAIT_MAX = 86_400  # seconds; the longest pause that a receiver can ask for
STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})[ \r]")


class Failed(Exception):
    """No answer came; the text of the exception is an error word of the contract."""


def main() -> None:  # pragma: no cover - in a process of its own; what it calls is tested in the tests' own
    """Send the requests on standard input until it ends, and write their outcomes to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    networks = [ipaddress.ip_network(each) for each in json.loads(sys.argv[2])]

    async def work() -> None:
        loop, requests = asyncio.get_running_loop(), asyncio.StreamReader(limit=LINE_BYTES_MAX)
        loop.set_default_executor(ThreadPoolExecutor(LOOK_UPS_MAX))
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
        await serve(requests, lambda line: os.write(1, line), networks)

    asyncio.new_event_loop().run_until_complete(work())
    os._exit(0)  # unfinished look-ups of names would keep it running


async def serve(requests: asyncio.StreamReader, answer: Callable[[bytes], object], allowed: Sequence[Network]) -> None:
    """Send the requests as they are read, any number at the same time, and pass the outcome of each to `answer` when it
    ends; at the end of the input, give up those under way and return."""
    tls, sending = ssl.create_default_context(), set[asyncio.Task[None]]()

    async def one(request: dict[str, Any]) -> None:
        answer(json.dumps({"id": request["id"], **await outcome_of(request, allowed, tls)}).encode() + b"\n")

    while line := await requests.readline():
        task = asyncio.create_task(one(json.loads(line)))
        sending.add(task)
        task.add_done_callback(sending.discard)
    for task in sending:
        task.cancel()


async def outcome_of(request: dict[str, Any], allowed: Sequence[Network], tls: ssl.SSLContext) -> dict[str, Any]:
    """The outcome of a request: its HTTP status or an error word of the contract (one of them is None), the duration in
    milliseconds, and the seconds that the receiver wants us to wait, 0 for none. `allowed` are networks that may be
    asked although they are not public."""
    begun, status, error, wait = time.monotonic(), None, None, 0
    try:
        async with asyncio.timeout(request["seconds"]):
            status, wait = await _post(request, allowed, tls)
    except Failed as failure:
        error = str(failure)
    except TimeoutError:
        error = "timeout"
    except (OSError, ValueError, EOFError, asyncio.LimitOverrunError, http.client.HTTPException):
        error = "no_answer"
    duration = round((time.monotonic() - begun) * 1000)
    return {"status": status, "error": error, "durationMs": duration, "retryAfter": wait}


async def _post(request: dict[str, Any], allowed: Sequence[Network], tls: ssl.SSLContext) -> tuple[int, int]:
    parts = urlsplit(request["url"])
    is_safe, host = parts.scheme == "https", parts.hostname or ""
    port = parts.port or (443 if is_safe else 80)
    addresses = await _addresses(host, port)
    if not all(is_within(each, allowed) or (is_safe and is_public(each)) for each in addresses):
        raise Failed("address_not_allowed")
    reader, writer = await _connect(addresses, port, tls if is_safe else None, host)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        body = base64.b64decode(request["base64"]) if "base64" in request else request["body"].encode()
        headers = {"Host": parts.netloc, **request["headers"], "Content-Length": len(body), "Connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
        await writer.drain()
        return await _answer(reader)
    finally:
        writer.transport.abort()


async def _addresses(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        answers = await loop.run_in_executor(None, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except OSError:
        raise Failed("name_not_found") from None
    return [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in answers]


async def _connect(
    addresses: Sequence[Address], port: int, tls: ssl.SSLContext | None, host: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the first of these addresses that accepts one, with the host name that the certificate must have.
    Raises Failed."""
    named = {"ssl": tls, "server_hostname": host} if tls is not None else {}
    for address in addresses:
        try:
            return await asyncio.open_connection(str(address), port, limit=HEAD_BYTES_MAX, **named)  # type: ignore[arg-type]
        except ssl.SSLError:
            raise Failed("certificate") from None
        except OSError:
            continue
    raise Failed("not_connected")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int]:
    """The final status of the exchange, and the seconds after which the receiver wants the next request."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        said = STATUS.match(head)
        if said is None:
            raise ValueError("not HTTP")
        status = int(said[1])
        if status >= 200:
            fields = http.client.parse_headers(io.BytesIO(head.partition(b"\r\n")[2]))
            return status, _seconds(fields.get("Retry-After", "").strip())


def _seconds(text: str) -> int:
    """The seconds that Retry-After names by a number or a date, at most a day; 0 for anything else."""
    if text.isascii() and text.isdecimal():
        return min(int(text[:9]), WAIT_MAX)
    with suppress(ValueError, TypeError, OverflowError):
        left = parsedate_to_datetime(text) - datetime.now(UTC)
        return max(0, min(round(left.total_seconds()), WAIT_MAX))
    return 0
