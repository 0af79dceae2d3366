"""GET and PUT /notices/settings: when and how a person is told."""

import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from analytics.notices.found import INTERRUPTS
from analytics.notices.hours import next_digest
from auth.principal import PAGE
from handlers.languages import LANGUAGES
from handlers.names import Json
from handlers.operations.selection import owner_of
from handlers.web.errors import BadRequest, Forbidden
from handlers.web.request import Request
from handlers.work.services import Services
from storage.database import Session, Transaction
from storage.notices import of_access
from storage.notices.ways import deliveries, settings
from storage.notices.ways.settings import NoticeSettings

OF_THE_PAGE = "How you are told is said on this service's own page, not by an app"
BAD_ZONE = "timeZone: must be the name of a time zone, such as Europe/Berlin"
BAD_HOURS = "quietHours: from and until must be two different times such as 22:00"
HOURS = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def get_notice_settings(services: Services, request: Request) -> Json:
    """When and how the user is told. Raises Forbidden for an app."""
    user_id = person_of(request)
    return _shape(settings_of(services, services.of(user_id), request))


def set_notice_settings(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Store when and how the user is told, and return it; what is left out is as before. Raises Forbidden and
    BadRequest."""
    user_id, now = person_of(request), services.clock.now()

    def work(session: Transaction) -> NoticeSettings:
        session.hold(user_id)
        before = settings_of(services, session, request)
        zone = _zone(body.get("timeZone", before.time_zone))
        kinds = body.get("kinds", {})
        wanted = NoticeSettings(
            language=body.get("language", before.language),
            time_zone=zone.key,
            quiet_hours=_quiet_hours(body["quietHours"]) if "quietHours" in body else before.quiet_hours,
            digest=body.get("digest", before.digest),
            kinds={**before.kinds, **{kind: kinds[kind] for kind in INTERRUPTS if kind in kinds}},
        )
        if before.told(of_access.KIND) == "now" != wanted.told(of_access.KIND):
            of_access.tell_of(session, user_id, of_access.SILENCED, now=now)
        settings.keep(session, user_id, wanted, digest_at=next_digest(now, zone, wanted.digest))
        deliveries.release(session, user_id, now=now)
        return wanted

    return _shape(services.of(user_id).atomically(work))


def person_of(request: Request) -> str:
    """The id of the user who asks by this service's own page; raises Forbidden for any app."""
    if request.principal.client_id != PAGE:
        raise Forbidden(OF_THE_PAGE)
    return owner_of(request)


def settings_of(services: Services, session: Session, request: Request) -> NoticeSettings:
    """The caller's settings, or those that hold until they say something: in the language of the request, in the zone
    of the server."""
    kept = settings.find(session, request.principal.user_id)
    return kept or NoticeSettings(language=request.language, time_zone=services.settings.time_zone.key)


def begin_settings(services: Services, session: Session, request: Request) -> None:
    """Store the settings that hold, so that letters are in the language in which the person has asked for them."""
    if settings.find(session, request.principal.user_id) is None:
        wanted = settings_of(services, session, request)
        settings.keep(session, request.principal.user_id, wanted, digest_at=None)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadRequest(BAD_ZONE) from error


def _quiet_hours(given: Mapping[str, str] | None) -> tuple[str, str] | None:
    if given is None:
        return None
    hours = given["from"], given["until"]
    if not all(HOURS.fullmatch(each) for each in hours) or hours[0] == hours[1]:
        raise BadRequest(BAD_HOURS)
    return hours


def _shape(wanted: NoticeSettings) -> Json:
    hours = wanted.quiet_hours
    return {
        "language": wanted.language if wanted.language in LANGUAGES else "en",
        "timeZone": wanted.time_zone,
        "quietHours": {"from": hours[0], "until": hours[1]} if hours is not None else None,
        "digest": wanted.digest,
        "kinds": {kind: wanted.told(kind) for kind in INTERRUPTS},
    }
