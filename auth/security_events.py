"""Security events for the operator's log: who signed in, who failed to, what was allowed, used twice or revoked.

One line per event on the logger `bankdata.auth`, `event key=value ...`. Names and network addresses appear as keyed
hashes, equal for equal names, so that lines can be related without naming anybody; BANKDATA_LOG_ADDRESSES=on prints
addresses as they are, for fail2ban. Tokens, codes and passwords are never passed to this module.
"""

import logging

from auth.record import AccessRecord, Deed
from auth.secret_text import keyed_hash
from storage.database import Session

HASH_CHARACTERS = 12  # 72 bits: enough to tell people apart

log = logging.getLogger("bankdata.auth")


class Events:
    """Writes events to the log: `info` for normal events, `alarm` for possible attacks. `did` adds to the record that
    people can read about their own account."""

    def __init__(self, key: bytes, *, shows_addresses: bool, record: AccessRecord) -> None:
        self._key = key
        self._record = record
        self._shows_addresses = shows_addresses

    def info(self, event: str, *, account: str | None = None, address: str | None = None, **facts: str) -> None:
        """Log an event at the level INFO. `account`, a user's name, and `address` are logged as keyed hashes (addresses
        as they are if the operator wants that), `facts` as they are."""
        self._write(logging.INFO, event, account, address, facts)

    def alarm(self, event: str, *, account: str | None = None, address: str | None = None, **facts: str) -> None:
        """Log an event at the level WARNING, with the same arguments as `info`."""
        self._write(logging.WARNING, event, account, address, facts)

    def did(
        self, user_id: str, deed: Deed, *, client_id: str = "", grant_id: str = "", is_refused: bool = False
    ) -> None:
        """Count in the user's access record, not in the log, something that was done to their account, or attempted
        (`is_refused`)."""
        self._record.note(user_id, deed, client_id=client_id, grant_id=grant_id, is_refused=is_refused)

    def tell(self, session: Session, user_id: str, deed: Deed, *, name: str = "") -> None:
        """Tell the user of something that the session's transaction does to their access; `name` is the app's."""
        self._record.tell(session, user_id, deed, name=name)

    def _write(self, level: int, event: str, account: str | None, address: str | None, facts: dict[str, str]) -> None:
        shown = dict(facts)
        if account is not None:
            shown["account"] = self._keyed_hash(f"account:{account.casefold()}")
        if address is not None:
            shown["address"] = address if self._shows_addresses else self._keyed_hash(f"address:{address}")
        log.log(level, "%s %s", event, " ".join(f"{name}={value}" for name, value in shown.items()))

    def _keyed_hash(self, text: str) -> str:
        return keyed_hash(self._key, text)[:HASH_CHARACTERS]
