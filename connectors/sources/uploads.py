"""The connection behind `bankdata import`: files arrive by command, so a sync finds nothing to fetch."""

from collections.abc import Iterator
from datetime import date, datetime

from connectors.connector import Connection, Json, Ready, Waiting
from storage.importing.records import Batch

NAME = "files"


class Uploads:
    """Implements `Connector`: always ready, never anything new; the next file comes by `bankdata import`."""

    name = NAME
    is_local = True
    unattended_syncs_max = None

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:  # noqa: ARG002 - the protocol names them
        """Nothing to ask for."""
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:  # noqa: ARG002 - as above
        """Ready at once."""
        return Ready()

    def fetch(
        self,
        connection: Connection,  # noqa: ARG002 - as above
        handle: Json,  # noqa: ARG002 - as above
        *,
        cursor: Json | None,  # noqa: ARG002 - as above
        today: date,  # noqa: ARG002 - as above
    ) -> Iterator[Batch]:
        """No batches."""
        return iter(())

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:
        """Nothing to tidy up."""
