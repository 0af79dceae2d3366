"""What a person ticks on the consent and account pages: accounts, bookings, whole account numbers, and how long."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from auth.tokens.access_check import coverage_of
from handlers.oauth.mistakes import Mistake
from storage.accounts import StoredAccount
from storage.oauth.grants import EVERYTHING, Terms

LASTS_DAYS = (365, 90, 30, 7, 1)


class NothingChosen(Exception):
    """No account is ticked, nor those that come later."""


def chosen_terms(form: Mapping[str, str], ticked: frozenset[str], owned: Sequence[StoredAccount]) -> Terms:
    """What the boxes say; raises NothingChosen, and Mistake for an account that is not one of the person's.

    A form without `lasts` is no form of a browser, which always sends a select: it grants what it did before there were
    boxes. Everything ticked is everything there is and will be; an account that comes later is covered where that is
    ticked, unless it was there before and was not.
    """
    if "lasts" not in form:
        return EVERYTHING
    ids = {account.id for account in owned}
    if not ticked <= ids:
        raise Mistake("bad_form")
    later = "later_accounts" in form
    if not ticked and not later:
        raise NothingChosen
    left_out = tuple(sorted(ids - ticked))
    listed = (left_out or None) if later else tuple(sorted(ticked))
    return Terms(
        accounts=listed,
        all_but=later and listed is not None,
        figures_only="bookings" not in form,
        full_numbers="full_numbers" in form,
    )


def chosen_lifetime(form: Mapping[str, str]) -> timedelta | None:
    """How long access lasts; None where the form does not say. Raises Mistake."""
    if "lasts" not in form:
        return None
    days = form["lasts"]
    if days not in map(str, LASTS_DAYS):
        raise Mistake("bad_form")
    return timedelta(days=int(days))


def account_boxes(owned: Sequence[StoredAccount], terms: Terms = EVERYTHING) -> list[dict[str, object]]:
    """The boxes of a page: id, what the account is called, the end of its number, whether it is ticked."""
    coverage = coverage_of(terms)
    return [
        {
            "id": account.id,
            "name": account.name or account.bank_name,
            "bank": account.bank_name,
            "end": account.iban[-4:] if account.iban else "",
            "is_ticked": coverage is None or coverage.covers(account.id),
        }
        for account in owned
    ]
