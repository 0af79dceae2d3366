"""The demo's data behind a real socket, for apps that know nothing of these tests."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from handlers.server import application
from handlers.settings import load
from handlers.work.services import open_services
from storage import users
from storage.oauth.grants import EVERYTHING
from tests.explanations.conftest import Service, body_of
from tests.running import running
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too

NODE_MIN = 20  # which Actual asks for; .ci/run installs what the system has


def _has_node() -> bool:
    if not shutil.which("npm"):
        return False
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    return int(said.lstrip("v").partition(".")[0]) >= NODE_MIN


collect_ignore = [] if _has_node() else ["test_actual.py"]


@dataclass
class Behind:
    """The running service of the user whose apps these are."""

    service: Service
    user_id: str

    def setup_token(self, name: str) -> str:
        """What its person pastes into an app."""
        return self.service.services.authorization.simplefin.setup_token(self.user_id, name, terms=EVERYTHING)

    def revoke(self, name: str) -> None:
        """End the access of an app."""
        grants = self.service.services.authorization.grants
        (grant,) = [each.grant for each in grants.connected_apps(self.user_id) if each.client_name == name]
        assert grants.revoke(grant.id, because="revoked by the user")

    @cached_property
    def accounts(self) -> list[dict[str, Any]]:
        """The accounts as REST says them."""
        found: list[dict[str, Any]] = body_of(self.service.client(self.user_id), "/accounts")["accounts"]
        return found

    @property
    def count_of_rows(self) -> int:
        """How many bookings there are by REST."""
        ids = ",".join(each["id"] for each in self.accounts)
        body = body_of(self.service.client(self.user_id), "/transactions", accountIds=ids)
        return int(body["pagination"]["total"])


def serving(folder: Path) -> Iterator[Behind]:
    """The demo's first user, on the real clock, in this copy of its folder."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        services = open_services(
            load(
                {"BANKDATA_RATE_LIMIT": "off"}, data_dir=folder, address=f"http://127.0.0.1:{listener.getsockname()[1]}"
            )
        )
        app = application(services)
        with running(app, listener, log_level="warning"):
            yield Behind(Service(services, app), users.get_by_name(services.everybody, "demo").id)
