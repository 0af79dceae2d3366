"""Memory of a real server under a thousand sign-ins: `python -m tests.attack.guessing.memory_of_sign_ins`.

Starts `bankdata demo` in a folder of its own, signs in from eight threads, and prints the resident memory every
hundred sign-ins; exits with 1 when the last hundred stand more than 40 MB above the first.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from handlers.commands.demo import PASSWORDS

SIGN_INS = 1000
AT_ONCE = 8  # two are hashed, the others wait
GROWTH_MAX = 40 * 1024 * 1024


def main() -> int:
    """Run it; the exit code."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(sys.executable).with_name("bankdata")
        command = [str(program), "demo", "--data", folder, "--port", str(port)]
        environment = {**os.environ, "BANKDATA_RATE_LIMIT": "off", "BANKDATA_LOG_LEVEL": "warning"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as served:
            try:
                return measured(served.pid, f"http://127.0.0.1:{port}")
            finally:
                served.terminate()


def wait_for(address: str) -> None:
    """Until the server answers; a minute at most."""
    for _ in range(600):
        try:
            httpx.get(f"{address}/oauth/login")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not start")


def measured(pid: int, address: str) -> int:
    """Sign in again and again; 0 when memory stays flat."""
    wait_for(address)
    process = psutil.Process(pid)
    print(f"start: {process.memory_info().rss / 2**20:.0f} MB", flush=True)
    seen: list[int] = []

    def sign_in(number: int) -> None:
        name, password = list(PASSWORDS.items())[number % len(PASSWORDS)]
        with httpx.Client(base_url=address, timeout=60) as client:
            page = client.get("/oauth/login").text
            token = re.search(r'name="form_token" value="([^"]*)"', page)
            assert token
            answer = client.post("/oauth/login", data={"form_token": token[1], "username": name, "password": password})
            assert answer.status_code == 303, (name, answer.status_code, answer.headers.get("retry-after"))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in range(100, SIGN_INS + 1, 100):
            began = time.monotonic()
            list(pool.map(sign_in, range(100)))
            seen.append(process.memory_info().rss)
            print(f"{done}: {seen[-1] / 2**20:.0f} MB, {time.monotonic() - began:.1f} s", flush=True)
    return int(seen[-1] - seen[0] > GROWTH_MAX)


if __name__ == "__main__":
    sys.exit(main())
