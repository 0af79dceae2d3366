"""The thread of a server that does what an upgrade has left to be done beside the requests: builds indexes, then gives
the bookings that were there their finer categories."""

import logging
import threading

from storage.database import Store, StoreError
from storage.migrations import later_indexes, later_leaves

AGAIN = 60.0  # seconds before what could not be built is tried again, and what another process builds is looked at

log = logging.getLogger("bankdata.store")


def keep_building(store: Store, stopped: threading.Event) -> None:
    """Build what is missing and end once it is there; until then each minute try again what did not work."""
    said = ""
    while not stopped.is_set():
        try:
            for name in later_indexes.build(store):
                log.info("the index %s is built", name)
            if not later_indexes.missing(store.for_everybody()):
                later_leaves.fill(store)
                return
        except StoreError as error:
            if said != str(error) and not stopped.is_set():  # a store that is closed meanwhile is no news
                log.warning("what an upgrade has left to do waits: %s", error)
            said = str(error)
        stopped.wait(AGAIN)
