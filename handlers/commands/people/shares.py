"""Commands on shares: which accounts one person lets another one see."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from auth.people.shares import Shared, Unoffered
from connectors.text import YEARS
from handlers.commands.control_socket import CommandError, Report
from handlers.work.services import Services
from storage import accounts
from storage.oauth import grants
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.shares import Share
from storage.users import User

UNOFFERED: dict[Unoffered, str] = {
    "self": "Nobody shares with themselves.",
    "already": "This is shared with that person, or offered to them, already. End it first: `bankdata shares end`.",
    "many": "Twenty offers are open. End some, or wait until some are accepted.",
}


def list_shares(services: Services, report: Report, *, user: User) -> None:
    """List what a user gives and gets, one a line: id, direction, the other person, state, end."""
    sharing, life = services.authorization.shares, services.incarnation.id
    given = [("to", each.receiver_name, each) for each in sharing.given_by(user.id)]
    got = [("from", each.giver_name, each) for each in sharing.given_to(user.id)]
    for direction, name, each in [*given, *got]:
        until = each.ends_at.isoformat(timespec="minutes") if each.ends_at is not None else "no end"
        apps = "\tapps too" if each.pass_on else ""
        report.line(f"{each.id}\t{direction} {name}\t{_state(each, life)}\t{until}{apps}")


def add_share(
    services: Services,
    report: Report,
    *,
    user: User,
    name: str | None,
    account: Sequence[str],
    invite: bool = False,
    until: str | None = None,
    pass_on: bool = False,
    with_words: bool = False,
) -> None:
    """Offer a user's accounts, those named or all of them and later ones, to the person of this name, who has to accept
    that, and print the id; or to whoever becomes a user by the address of an invitation (`invite`), which is printed;
    with `pass_on` to their apps, too, `with_words` with the user's categories and notes. `until` is the last day,
    YYYY-MM-DD. CommandError where it cannot be offered."""
    own, sharing, life = services.of(user.id), services.authorization.shares, services.incarnation.id
    chosen = [accounts.resolve(own, user.id, each).id for each in account]
    if grants.held_of(services.everybody, user.id) & set(chosen):
        raise CommandError("What others share cannot be shared on.")
    offered = Shared(
        terms=Terms(accounts=tuple(sorted(chosen))) if chosen else EVERYTHING,
        ends_at=_end_of(date.fromisoformat(until), services) if until is not None else None,
        pass_on=pass_on,
        with_words=with_words,
    )
    if (name is None) is not invite:
        raise CommandError("Say to whom: a name, or --invite.")
    if name is None:
        address = sharing.invite(user, None, life=life, **offered)
        if address is None:
            raise CommandError(UNOFFERED["many"])
        report.line(address)
        return
    made = sharing.offer(user, name, life=life, **offered)
    if isinstance(made, str):
        raise CommandError(UNOFFERED[made])
    report.line(made.id)
    report.note("If there is a person of this name, they can accept it within seven days, on /account/shares.")


def end_share(services: Services, report: Report, *, user: User, share_id: str) -> None:
    """End what a user gives or gets; CommandError for an id of nothing of theirs."""
    if not services.authorization.shares.end(user, share_id):
        raise CommandError("There is no such share. `bankdata shares list` shows them.")
    services.households.round(share_id)
    report.note("It has ended. What was shared is gone, or will be as soon as an import of that person is over.")


def accept_share(services: Services, report: Report, *, user: User, share_id: str) -> None:
    """Accept what is offered to a user; CommandError for an id of no open offer to them."""
    if not services.authorization.shares.accept(user, share_id):
        raise CommandError("There is no such offer. `bankdata shares list` shows them.")
    report.note("Accepted. The accounts appear within a few seconds while a server runs.")


def _state(share: Share, life: str) -> str:
    if share.accepted_at is None:
        return "offered"
    return "accepted" if share.life == life else "rests since a restore"


def _end_of(day: date, services: Services) -> datetime:
    if day.year not in YEARS:
        raise CommandError(f"--until: a day before {YEARS.stop}.")
    end = datetime.combine(day + timedelta(days=1), time(), services.settings.time_zone).astimezone(UTC)
    if end <= services.clock.now_in_utc():
        raise CommandError(f"--until: {day} has passed, so nobody could accept it.")
    return end
