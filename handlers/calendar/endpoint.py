"""Answers requests for a calendar's secret address, and limits how often each may be asked."""

import hashlib
from datetime import date
from importlib import resources

from starlette.concurrency import run_in_threadpool

from analytics.periods import last_of_twelve_months
from analytics.recurring.directions import OUTGOING
from analytics.recurring.history import due_days
from connectors.text import clean
from handlers.calendar.icalendar import DuePayment, calendar_text
from handlers.json_shapes import money_text
from handlers.web.app import Api
from handlers.web.errors import Forbidden, NotFound
from handlers.web.request import Answer, Request
from handlers.web.steps.rate_limit import Limiter, Rate
from handlers.work.services import Services
from handlers.work.sync.detection import recurring_of
from storage import accounts
from storage.accounts import SelectedAccounts
from storage.oauth import grants
from storage.users import User

OF_LINK = Rate(requests=60, seconds=60)  # per user, who may have subscribed on several devices
OF_REFUSED = Rate(requests=60, seconds=60)  # per network address

DESCRIPTION = (resources.files("handlers.calendar") / "calendar-api.json").read_bytes()


def calendar_api(services: Services, limiter: Limiter) -> Api:
    """The interface of the payment calendar: its description, with its one operation."""

    async def payments(request: Request, *, secret: str) -> Answer:
        """The calendar of the user whose secret address this is. Every secret that opens none gets the same NotFound,
        and is counted by network address; a stranger's guesses do not use up the budget of the user who has the right
        one. Raises TooManyRequests, and Forbidden for a user without a subscription."""
        links = services.authorization.calendar
        user = await run_in_threadpool(links.read, secret, address=request.client_address)
        if user is None:
            await limiter.spend("calendar refused", request.client_address, rate=OF_REFUSED)
            raise NotFound()
        await limiter.spend("calendar", user.id, rate=OF_LINK)
        if not user.has_subscription:
            raise Forbidden(f"Active subscription required. Subscribe at {services.settings.billing_url}")
        return await run_in_threadpool(_calendar, services, user, request)

    return Api(description=DESCRIPTION, operations={"getPaymentCalendar": payments})


def _calendar(services: Services, user: User, request: Request) -> Answer:
    body = calendar_text(due_payments(services, user.id, services.clock.today()))
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    headers = {"etag": etag, "cache-control": "private", "content-type": "text/calendar; charset=utf-8"}
    if request.knows(etag):
        return Answer(body=b"", status=304, headers=headers)
    return Answer(body=body, headers=headers)


def due_payments(services: Services, user_id: str, today: date) -> list[DuePayment]:
    """The payments that fall due within the next twelve months, over all accounts of a user, sorted by day, then by id:
    those of every outgoing recurring payment that goes on, at its latest amount."""
    database = services.of(user_id)
    with database.transaction() as session:
        everything = accounts.everything(session, user_id)
        if held := grants.held_of(services.everybody, user_id, but_passed_on=True):  # what others share is for no app
            own = [each for each in everything.accounts if each.id not in held]
            everything = SelectedAccounts(own, is_everything=False)
        recurring = recurring_of(database, user_id, everything, today=today, session=session)
    due = [
        DuePayment(
            id=each.id,
            day=day,
            summary=f"{clean(each.merchant_name) or 'Payment'}: "
            f"{money_text(each.amount, each.currency)} {each.currency}",
            known_since=each.last_charged,
        )
        for each in recurring
        if each.goes_on and each.direction == OUTGOING
        for day in due_days(
            each.charge_days or [each.last_charged],
            frequency=each.frequency,
            today=today,
            until=last_of_twelve_months(today),
            first_due=None if each.charge_ids else each.next_expected,
        )
    ]
    return sorted(due, key=lambda payment: (payment.day, payment.id))
