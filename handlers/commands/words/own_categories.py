"""Commands on a user's own categories: list, add, rename and remove them; also reads a place as people type it."""

from collections.abc import Callable

from analytics.classification.facts import CATEGORIES, LEAVES, category_of
from analytics.classification.rules import TAG_LENGTH_MAX, ChosenCategory, is_tag
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.languages import ENGLISH, catalogue
from handlers.work.services import Services
from storage.annotations import annotations, own_categories
from storage.annotations.annotation import OwnCategory, fold_tag
from storage.annotations.own_categories import OWN_CATEGORIES_MAX, NameTaken, TooMany
from storage.database import Session, Transaction
from storage.importing import derivation
from storage.users import User

UNKNOWN = "There is no category with that name. `bankdata categories list` shows all of them."


def list_categories(services: Services, report: Report, *, user: User) -> None:
    """List each category with its finer categories and the user's own categories below them."""
    own = list(annotations.own_categories(services.everybody, user.id).values())
    names = catalogue(ENGLISH).named("category")
    for category in CATEGORIES:
        report.line(category)
        _list_own(report, own, category, None)
        for leaf in LEAVES.values():
            if leaf.category == category:
                report.line(f"  {leaf.code} ({names[leaf.code]})")
                _list_own(report, own, category, leaf.code)


def add_category(services: Services, report: Report, *, user: User, name: str, below: str) -> None:
    """Add an own category below a category or a finer one, given by its code (`below`). CommandError for an unknown
    code, and a name that is taken there."""
    if below not in LEAVES and below not in CATEGORIES:
        raise CommandError(UNKNOWN)
    place = (category_of(below), below if below in LEAVES else None)
    _keep(services, user, name, lambda session: own_categories.add(session, user.id, name, *place))
    report.note("Added.")


def rename_category(services: Services, report: Report, *, user: User, name: str, new_name: str) -> None:
    """Rename an own category, given by its name or id; its bookings stay in it. CommandError for an unknown or
    ambiguous one, and a name that is taken there."""
    _keep(
        services,
        user,
        new_name,
        lambda session: own_categories.rename(session, user.id, _find(session, user.id, name), new_name),
    )
    report.note("Renamed.")


def remove_category(services: Services, report: Report, *, user: User, name: str) -> None:
    """Remove an own category, given by its name or id; its bookings stay in the category or finer category above it.
    Reports how many bookings changed. CommandError for an unknown or ambiguous one."""
    now = services.clock.now()

    def work(session: Transaction) -> int:
        own_categories.remove(session, user.id, _find(session, user.id, name).id)
        return derivation.apply_rules(session, user.id, now=now).height

    report.line(f"{quantity(services.alone(user.id, work), 'booking')} changed.")


def place_named(session: Session, user_id: str, text: str) -> ChosenCategory:
    """The place that a text names: by the code of a category or finer category, or by the id of an own category, or its
    name without regard to case. Raises CommandError for an unknown or ambiguous one."""
    if text in CATEGORIES:
        return ChosenCategory(text)
    if text in LEAVES:
        return ChosenCategory(category_of(text), text)
    own = _find(session, user_id, text)
    return ChosenCategory(own.category, own.detailed_category, own.id)


def _find(session: Session, user_id: str, text: str) -> OwnCategory:
    own = annotations.own_categories(session, user_id).values()
    meant = [each for each in own if text == each.id] or [each for each in own if fold_tag(text) == fold_tag(each.name)]
    if not meant:
        raise CommandError(UNKNOWN)
    if len(meant) > 1:
        ids = ", ".join(f"{each.id} below {each.detailed_category or each.category}" for each in meant)
        raise CommandError(f"Several have that name; give one of these ids: {ids}.")
    return meant[0]


def _keep(services: Services, user: User, name: str, work: Callable[[Transaction], object]) -> None:
    if not is_tag(name):
        raise CommandError(f"A name has 1 to {TAG_LENGTH_MAX} printable characters.")
    try:
        services.alone(user.id, work)
    except NameTaken as error:
        raise CommandError("Another one at the same place has this name.") from error
    except TooMany as error:
        raise CommandError(f"There may be {OWN_CATEGORIES_MAX} categories of one's own.") from error


def _list_own(report: Report, own: list[OwnCategory], category: str, leaf: str | None) -> None:
    for each in own:
        if (each.category, each.detailed_category) == (category, leaf):
            report.line(f"{'    ' if leaf else '  '}“{each.name}” ({each.id})")
