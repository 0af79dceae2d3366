"""Decides, when the turn of a letter has come, whether it is still to be sent, when, and what it says."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from analytics.notices.hours import counts_of, day_of, quiet_until
from connectors.ways import Letter, Way
from handlers.operations.notices import letters
from handlers.operations.notices.leaving import link_of
from handlers.operations.notices.letters import Said
from handlers.work.services import Services
from storage import accounts, users
from storage.bank_access import connection_secrets
from storage.database import Transaction
from storage.notices import stored
from storage.notices.of_access import KIND as ACCESS
from storage.notices.stored import Notice
from storage.notices.ways import deliveries, settings, targets
from storage.notices.ways.deliveries import NoticeDelivery
from storage.notices.ways.targets import NoticeTarget

A_DAY_MAX = 3
OF_ACCESS_MAX = 10
MAILS_MAX = 20
STATES = {"notice": ("working",), "over": ("working",), "digest": ("working",), "test": ("working", "paused"),
          "code": ("unconfirmed",), "removed": ("removed",)}  # fmt: skip
"""The states of a target in which it gets what."""
WAITS_FOR_QUIET = ("notice", "over", "digest")


class Prepared(Struct, frozen=True):
    """A claimed letter with its way and address."""

    delivery: NoticeDelivery
    way: Way
    address: str
    letter: Letter


class _LetterTurn(Struct, frozen=True, kw_only=True):
    """What is asked about a letter whose turn it is; `counted` is what its person was sent on the present day."""

    session: Transaction
    delivery: NoticeDelivery
    target: NoticeTarget
    code: str
    counted: dict[str, Any]

    @property
    def may_be_mailed(self) -> bool:
        """Whether there were few enough mails today, of which this is counted as one when it is tried first. What was
        done to access has its own bound: whoever steals a session could use up this one."""
        if self.delivery.kind == ACCESS or self.delivery.what == "removed" or self.delivery.attempts:
            return True
        self.counted["mails"] = self.counted.get("mails", 0) + 1
        return bool(self.counted["mails"] <= MAILS_MAX)


def take(
    services: Services,
    session: Transaction,
    *,
    due: NoticeDelivery,
    now: datetime,
    lease: datetime,
    digest: Said | None,
) -> Prepared | None:
    """Claim a due letter until `lease` and make it ready; None where another process was faster, or it is dropped or
    put off. `digest` is what that of a digest says, None for nothing. Raises SecretsUnreadable and KeysUnusable."""
    user = users.find(session, due.user_id)
    target = targets.find(session, due.user_id, due.target_id)
    wanted = settings.find(session, due.user_id)
    delivery = deliveries.claim(session, due, until=lease)
    if delivery is None or user is None or target is None or wanted is None:
        return None
    if target.state not in STATES[delivery.what] or user.paused_at is not None:
        return _dropped(session, delivery, "gone")
    if not user.has_subscription and delivery.kind != ACCESS:
        return _dropped(session, delivery, "not_allowed")
    if delivery.what == "notice" and delivery.kind not in (None, ACCESS) and wanted.told(delivery.kind) != "now":
        return _dropped(session, delivery, "over")
    way = services.ways.get(target.way)
    if way is None:
        return _dropped(session, delivery, "not_here")
    if delivery.what in WAITS_FOR_QUIET and delivery.kind != ACCESS:
        until = quiet_until(now, ZoneInfo(wanted.time_zone), wanted.quiet_hours)
        if until is not None:
            deliveries.settle(session, delivery, state="waiting", reason=None, due_at=until)
            return None
    if delivery.what == "over" and _is_being_told(session, delivery):
        deliveries.settle(session, delivery, state="waiting", reason=None, due_at=lease)
        return None
    secrets = connection_secrets.find(session, services.connection_keys, due.user_id, due.target_id)
    turn = _LetterTurn(
        session=session,
        delivery=delivery,
        target=target,
        code=secrets.get("code", ""),
        counted=counts_of(settings.counted(session, due.user_id), day_of(now, ZoneInfo(wanted.time_zone))),
    )
    said = (digest or "over") if delivery.what == "digest" else _said(turn)
    if not isinstance(said, str) and target.way == "email" and not turn.may_be_mailed:
        said = "limit"
    settings.count(session, due.user_id, turn.counted)
    if isinstance(said, str):
        return _dropped(session, delivery, said)
    place = f"?notice={delivery.notice_id}" if delivery.notice_id else "" if delivery.what == "digest" else "notices"
    link = f"{services.settings.public_url}/{place}"
    leave = link_of(services, target, secrets["leave"])
    written = letters.letter(
        delivery, said, language=wanted.language, link=link, leave=leave, at=now - services.clock.offset
    )
    return Prepared(delivery, way, secrets["address"], written)


def _dropped(session: Transaction, delivery: NoticeDelivery, reason: str) -> Prepared | None:
    """Send the letter no more; nothing is prepared."""
    deliveries.settle(session, delivery, state="dropped", reason=reason, due_at=None)
    if delivery.what == "removed":
        targets.remove(session, delivery.user_id, delivery.target_id)
    return None


def _is_being_told(session: Transaction, delivery: NoticeDelivery) -> bool:
    """Whether another process is just telling the target of the notice."""
    before = deliveries.of_notice(session, delivery.user_id, delivery.target_id, delivery.notice_id or "")
    return any(each.what == "notice" and each.is_claimed for each in before)


def _said(turn: _LetterTurn) -> Said | str:
    """What the letter says, or the word for why it is not sent."""
    match turn.delivery.what:
        case "code":
            return letters.of_code(turn.code)
        case "test":
            return letters.of_test()
        case "removed":
            return letters.of_removal()
    return _of_notice(turn)


def _of_notice(turn: _LetterTurn) -> Said | str:
    session, delivery = turn.session, turn.delivery
    notice = stored.find(session, delivery.user_id, delivery.notice_id or "")
    shown = {each.id for each in accounts.of_user(session, delivery.user_id)}
    if notice is None or not shown.issuperset(notice.content["accountIds"]):
        return "over"
    if delivery.what == "over":
        before = deliveries.of_notice(session, delivery.user_id, delivery.target_id, notice.id)
        was_told = any(each.is_of_notice and each.state == "delivered" for each in before)
        is_over = notice.state in ("over", "withdrawn")
        return letters.of_end(notice, is_whole=turn.target.whole_sentences) if was_told and is_over else "over"
    if notice.state != "open" and notice.kind != ACCESS:  # a thief would read or dismiss what tells of them
        return "over"
    return _within_a_day(turn, notice)


def _within_a_day(turn: _LetterTurn, notice: Notice) -> Said | str:
    """A notice as long as it is one of the first of its day; instead of the next, to each target once, how many more
    there are."""
    said = letters.of_notice(notice, is_whole=turn.target.whole_sentences)
    name, most = ("access", OF_ACCESS_MAX) if notice.kind == ACCESS else ("notices", A_DAY_MAX)
    told = turn.counted.setdefault(name, [])
    if notice.id not in told and len(told) < most:
        told.append(notice.id)
    if notice.id in told:
        if turn.delivery.content:  # it was to say how many more there are on an earlier day
            deliveries.set_count(turn.session, turn.delivery, is_count=False)
        return said
    if notice.kind == ACCESS:
        return "limit"
    first = turn.counted.setdefault("more", {}).setdefault(turn.target.id, turn.delivery.id)
    unsaid = turn.counted.setdefault("unsaid", {}).setdefault(turn.target.id, [])
    if first != turn.delivery.id:
        unsaid.append(notice.id)
        return "limit"
    deliveries.set_count(turn.session, turn.delivery, is_count=True)
    waiting = deliveries.waiting(turn.session, turn.delivery.user_id, turn.target.id)
    others = {each.notice_id for each in waiting if each.what == "notice" and each.kind != ACCESS}
    return letters.of_more(len({*others, *unsaid} - set(told)))
