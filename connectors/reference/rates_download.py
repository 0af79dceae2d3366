"""Download of the file of reference rates, a public file that needs no account.

It runs in the process of `bankdata rates update`, never in the server's. The download is bounded in time and size,
comes from the configured address or another one of the same origin, and is returned whole or not at all.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from connectors.connector import LimitExceeded, ProviderUnavailable, SourceError
from connectors.reachable import is_reachable

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS_MAX = 5.0
SILENCE_SECONDS_MAX = 20.0
SECONDS_MAX = 120.0  # for the whole file: a byte every 19 seconds would keep a person waiting for months
FILE_BYTES_MAX = 20_000_000  # the whole history since 1999 has 0.7 MB as a zip, 2 MB without
REDIRECTS_MAX = 3

Progress = Callable[[int, int], None]
"""A function that gets the number of bytes received and of bytes expected, as far as the server says so."""


class NoFileThere(SourceError):
    """The address answers, and not with a file."""


def download(address: str, *, progress: Progress) -> bytes:
    """The file at `address`, which `is_reachable` allows. Raises ProviderUnavailable, NoFileThere and LimitExceeded,
    each with one sentence that names the host."""
    import httpx  # takes a tenth of a second, which no other command spends

    assert is_reachable(address), "checked with the settings"
    parts, until = urlsplit(address), time.monotonic() + SECONDS_MAX
    host = parts.netloc
    try:
        with httpx.Client(
            timeout=httpx.Timeout(SILENCE_SECONDS_MAX, connect=CONNECT_SECONDS_MAX),
            headers={"User-Agent": "bankdata", "Accept-Encoding": "identity"},  # unpacked it could be of any size
            trust_env=parts.scheme == "https",  # the operator's proxy and certificates, but not for this machine
        ) as client:
            url = httpx.URL(address)
            for _ in range(REDIRECTS_MAX + 1):
                with client.stream("GET", url) as answer:
                    if not answer.has_redirect_location:
                        return _body(answer, host, until, progress)
                    url = _redirect_target(answer)
            raise NoFileThere(f"{host} sends on from one address to the next without end.")
    except (httpx.InvalidURL, UnicodeError) as error:  # UnicodeError: empty or too long labels in a name
        raise NoFileThere(f"{address} is no address of a file, and leads to none.") from error
    except httpx.ConnectTimeout as error:
        raise ProviderUnavailable(f"{host} did not answer within {CONNECT_SECONDS_MAX:g} seconds.") from error
    except httpx.TimeoutException as error:
        raise ProviderUnavailable(f"{host} sent nothing for {SILENCE_SECONDS_MAX:g} seconds.") from error
    except (httpx.ConnectError, httpx.ProxyError) as error:
        raise ProviderUnavailable(f"{host} cannot be reached: {_reason(error)}.") from error
    except httpx.TransportError as error:
        raise ProviderUnavailable(f"{host} did not send the whole file: {_reason(error)}.") from error
    except (OSError, ValueError, ImportError) as error:  # SSL_CERT_FILE or HTTPS_PROXY in the environment is wrong
        raise ProviderUnavailable(f"{host} cannot be asked in this environment: {_reason(error)}.") from error


def _redirect_target(answer: "httpx.Response") -> "httpx.URL":
    """The address that an answer redirects to. Raises NoFileThere for another scheme, host or port."""
    here, there = answer.url, answer.next_request.url if answer.next_request else answer.url
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
        raise NoFileThere(f"{_origin(here)} sends on to {_origin(there)}, and that is not followed.")
    return there


def _body(answer: "httpx.Response", host: str, until: float, progress: Progress) -> bytes:
    """The whole body as it comes, without trusting an announced length. Raises NoFileThere, LimitExceeded and
    ProviderUnavailable."""
    if answer.status_code != 200:
        raise NoFileThere(f"{host} answered with status {answer.status_code} instead of the file.")
    announced = answer.headers.get("Content-Length", "0")
    expected = int(announced) if announced.isdecimal() else 0
    body = bytearray()
    for piece in answer.iter_raw():
        body += piece
        if len(body) > FILE_BYTES_MAX:
            raise LimitExceeded(f"{host} sent more than {FILE_BYTES_MAX} bytes, which no file of rates has.")
        if time.monotonic() > until:
            raise ProviderUnavailable(f"{host} needed more than {SECONDS_MAX:g} seconds to send the file.")
        progress(len(body), max(len(body), expected))
    return bytes(body)


def _origin(url: "httpx.URL") -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
