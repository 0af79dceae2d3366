"""The background thread that finishes an upgrade: it builds indexes, then assigns finer categories to bookings that
were stored before."""

import logging
import threading

from storage.database import Store, StoreError
from storage.migrations import later_indexes, later_leaves

AGAIN = 60.0  # seconds before a failed build is tried again, and another process's build is checked

log = logging.getLogger("bankdata.store")


def keep_building(store: Store, stopped: threading.Event) -> None:
    """Build the missing indexes and fill in finer categories, then end; after a StoreError, and while another process
    builds, try again each minute. Ends early once `stopped` is set."""
    said = ""
    while not stopped.is_set():
        try:
            for name in later_indexes.build(store):
                log.info("the index %s is built", name)
            if not later_indexes.missing(store.for_everybody()):
                later_leaves.fill(store)
                return
        except StoreError as error:
            # That a stopping server closed the store is not worth a line
            if said != str(error) and not stopped.is_set():
                log.warning("what an upgrade has left to do waits: %s", error)
            said = str(error)
        stopped.wait(AGAIN)
