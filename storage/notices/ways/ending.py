"""The end of targets: by their person, or with the browser session in which they were made."""

from collections.abc import Callable
from datetime import datetime

from storage.database import Session, set_values
from storage.notices import of_access
from storage.notices.ways import deliveries, targets
from storage.notices.ways.targets import NoticeTarget


def end(session: Session, target: NoticeTarget, *, now: datetime) -> None:
    """Remove a target, tell its person, and send one last sentence there if it has worked: whoever steals a session
    silences nobody."""
    if target.state == "unconfirmed":
        remove(session, target, now=now)
        return
    targets.end(session, target.user_id, target.id)
    deliveries.add(session, target.user_id, target_id=target.id, what="removed", now=now)
    of_access.tell_of(session, target.user_id, "deleteNoticeTarget", now=now)


def remove(session: Session, target: NoticeTarget, *, now: datetime) -> None:
    """Remove a target at once, without one more sentence there, and tell its person."""
    targets.remove(session, target.user_id, target.id)
    of_access.tell_of(session, target.user_id, "deleteNoticeTarget", now=now)


def end_of_sessions(session: Session, user_id: str, is_ended: Callable[[str], bool], *, now: datetime) -> None:
    """End the user's targets that are browsers signed out: those whose session's hash `is_ended`."""
    ended = [each for each in targets.of_user(session, user_id) if each.session_hash and is_ended(each.session_hash)]
    if ended:
        session.changes(user_id)
    for each in ended:
        end(session, each, now=now)


def end_all(session: Session, user_id: str, *, now: datetime) -> None:
    """End all targets of the user, such as those that somebody else has added."""
    session.changes(user_id)
    for each in targets.of_user(session, user_id):
        end(session, each, now=now)


def follow_session(session: Session, user_id: str, before: str, after: str) -> None:
    """The same browser has another session now, by the hashes of both."""
    set_values(session, "notice_targets", {"user_id": user_id, "session_hash": before}, session_hash=after)
