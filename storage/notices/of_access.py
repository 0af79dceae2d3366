"""What people are told of their own access, in the transaction that does it, so that no crash keeps it from them."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from secrets import token_hex

from analytics.notices.found import Finding
from storage.database import Session
from storage.notices import stored
from storage.oauth import shares

KIND = "access.new"
SILENCED = "setNoticeSettings"
"""The deed by which a person is no longer told at once; of this one they are, for it may not have been they."""
OFFERED = "getOffer"
SHOWN_FOR = timedelta(days=30)
OFFERS_A_DAY = 5  # of one giver that are told


def tell_offers(session: Session, user_id: str, *, now: datetime) -> None:
    """Tell the user of the offers that they can accept, each once. That is no part of the transaction that offers, as
    its time would tell the giver whether there is somebody of the name."""
    session.changes(user_id)
    for about in _untold_offers(session, user_id, now.date()):
        tell_of(session, user_id, OFFERED, now=now, about=about)


def tell_of(session: Session, user_id: str, deed: str, *, now: datetime, about: str = "", **arguments: str) -> None:
    """Tell the user of one deed on their account; each is a cause by itself, unless it is `about` the same."""
    finding = Finding(
        kind=KIND,
        subject=f"{deed}|{about or token_hex(12)}",
        day=now.date(),
        message=f"{KIND}.{deed}",
        arguments=arguments,
        ends_on=(now + SHOWN_FOR).date(),
    )
    stored.add(session, user_id, finding, today=now.date())


def _untold_offers(session: Session, user_id: str, today: date) -> Iterator[str]:
    """Of the offers that this person can accept, those that they were not told of: giver and id of each."""
    rows = session.rows("SELECT subject, day FROM notices WHERE user_id = $1 AND kind = $2", user_id, KIND)
    told = {row["subject"]: row["day"] for row in rows}
    for each in shares.of_receiver(session, user_id):
        subject, of_giver = f"{OFFERED}|{each.giver_id}|{each.id}", f"{OFFERED}|{each.giver_id}|"
        are_today = sum(day == today for about, day in told.items() if about.startswith(of_giver))
        if each.accepted_at is None and subject not in told and are_today < OFFERS_A_DAY:
            told[subject] = today
            yield subject.removeprefix(f"{OFFERED}|")
