"""The connection behind `bankdata import`: files are brought by command, so a sync finds nothing to fetch."""

from connectors.connector import Connector

NAME = "files"


class Uploads(Connector):
    """A source that is always ready and never has news; files come by `bankdata import`."""

    name = NAME
    is_local = True
    unattended_syncs_max = None
