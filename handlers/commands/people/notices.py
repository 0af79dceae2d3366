"""Commands on notices: what a user is told, how and where, and whether that arrives."""

from auth.principal import PAGE, Principal
from auth.scopes import ALL_SCOPES
from handlers.commands.control_socket import CommandError, Report
from handlers.notice_sentences import text_of
from handlers.operations.notices.listing import visible
from handlers.operations.notices.targets import send_test
from handlers.web.errors import Refusal
from handlers.work.services import Services
from storage.database import Transaction
from storage.notices.ways import settings, targets
from storage.users import User


def list_notices(services: Services, report: Report, *, user: User, state: str) -> None:
    """List the user's notices in a state, the latest first: day, kind, and what it says."""
    caller = Principal(
        user_id=user.id,
        client_id=PAGE,
        scopes=frozenset(ALL_SCOPES),
        grant_id=None,
        has_subscription=user.has_subscription,
    )
    found = visible(services.of(user.id), caller, states=[state])
    for each in found:
        said = each.content
        report.line(f"{each.created_at.date()} {each.kind}: {text_of(said['message'], said['arguments'])}")
    if not found:
        report.note(f"Nothing is {state}.")


def show_settings(services: Services, report: Report, *, user: User) -> None:
    """Print when and how the user is told, one a line, with the kinds that are not told at once."""
    wanted = settings.find(services.of(user.id), user.id)
    if wanted is None:
        report.note(f"{user.name} has said nothing yet: every kind is told at once, in no quiet hours.")
        return
    report.line(f"language\t{wanted.language}")
    report.line(f"time zone\t{wanted.time_zone}")
    report.line(f"quiet hours\t{' to '.join(wanted.quiet_hours) if wanted.quiet_hours else 'none'}")
    report.line(f"digest\t{wanted.digest}")
    for kind, told in sorted(wanted.kinds.items()):
        if told != "now":
            report.line(f"{kind}\t{told}")


def list_targets(services: Services, report: Report, *, user: User) -> None:
    """List where the user is told, one a line: id, way, what is shown of the address, name, state and why."""
    found = targets.of_user(services.of(user.id), user.id)
    for each in found:
        shown = f"{each.scheme}:...{each.last}"
        report.line("\t".join((each.id, each.way, shown, each.name or "", each.state, each.reason or "")).rstrip())
    if not found:
        report.note(f"{user.name} is told on the page alone.")


def test_target(services: Services, report: Report, *, user: User, target_id: str) -> None:
    """Have a test sent to a target that works or is paused; CommandError for another one, and after ten tests a
    day."""

    def work(session: Transaction) -> None:
        session.hold(user.id)
        target = targets.find(session, user.id, target_id)
        if target is None or target.state not in ("working", "paused"):
            raise CommandError(f"No target {target_id} works. `bankdata notices targets` lists them.")
        send_test(services, session, target)

    try:
        services.of(user.id).atomically(work)
    except Refusal as error:
        raise CommandError(f"{error}.") from None
    report.note(f"A server sends it in a moment; what came of it stands on {user.name}'s page, by the target.")
