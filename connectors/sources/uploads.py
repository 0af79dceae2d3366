"""The connection behind `bankdata import`: files are brought by command, so a sync finds nothing to fetch."""

from collections.abc import Iterator
from datetime import date

from analytics.records import Batch
from connectors.connector import Connection, Connector, Json

NAME = "files"


class Uploads(Connector):
    """A source that is always ready and never has news; files come by `bankdata import`."""

    name = NAME
    is_local = True
    unattended_syncs_max = None

    def fetch(
        self,
        connection: Connection,  # noqa: ARG002 - the protocol names them
        handle: Json,  # noqa: ARG002 - as above
        *,
        cursor: Json | None,  # noqa: ARG002 - as above
        today: date,  # noqa: ARG002 - as above
    ) -> Iterator[Batch]:
        """No batches, because files come by command."""
        return iter(())
