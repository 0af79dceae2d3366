"""What people are told of their own access: soon after it was done, in the order of the access record."""

from collections.abc import Collection, Iterator
from datetime import date, datetime, timedelta

from analytics.notices.found import Finding
from storage.database import Session, Transaction
from storage.notices import stored
from storage.oauth import shares

KIND = "access.new"
SILENCED = "setNoticeSettings"
"""The deed by which a person is no longer told at once; of this one they are, for it may not have been they."""
OFFERED = "getOffer"
SHOWN_FOR = timedelta(days=30)
DEEDS = frozenset(
    (
        "giveConsent",
        "claimSimpleFin",
        "makeCalendarLink",
        "addPasskey",
        "changePassword",
        "setPasswordByLink",
        "turnOnSecondFactor",
        "turnOffSecondFactor",
        "useRecoveryCode",
        "offerShare",
        OFFERED,
        "acceptShare",
        "linkProvider",
        "signInByLink",
    )
)
"""The deeds (auth.record) of which people are told, each once a day and app; but of each offer by itself."""
OFFERS_A_DAY = 5  # of one giver that are told


def tell(session: Transaction, user_id: str, deeds: Collection[tuple[str, str]], *, now: datetime) -> None:
    """Tell the user of these deeds on their account, each with the id of the app that it concerns ("" for none)."""
    session.changes(user_id)
    names = _names(session, [client_id for _, client_id in deeds])
    for deed, client_id in sorted(deeds):
        for about in _untold_offers(session, user_id, now.date()) if deed == OFFERED else [client_id]:
            tell_of(session, user_id, deed, about, now=now, name=names.get(client_id, ""))


def tell_of(session: Session, user_id: str, deed: str, subject: str, *, now: datetime, **arguments: str) -> None:
    """Tell the user of one deed on one thing, such as a target that was added, in the transaction that does it."""
    finding = Finding(
        kind=KIND,
        subject=f"{deed}|{subject}",
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


def _names(session: Session, client_ids: Collection[str]) -> dict[str, str]:
    rows = session.rows("SELECT id, name FROM oauth_clients WHERE id = ANY($1::TEXT[])", sorted({*client_ids} - {""}))
    return {row["id"]: row["name"] for row in rows}
