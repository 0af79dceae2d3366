"""What a person ticks on the consent and account pages: accounts, bookings, whole account numbers, and how long."""

from collections.abc import Mapping, Sequence, Set
from datetime import timedelta

from auth.authorization_details import LASTS_DAYS, AccountInformation
from auth.tokens.access_check import coverage_of
from handlers.oauth.mistakes import Mistake
from storage.accounts import StoredAccount
from storage.oauth.grants import EVERYTHING, Terms


class NothingChosen(Exception):
    """No account is ticked, nor those that come later."""


def preset_terms(details: AccountInformation | None, owned: Sequence[StoredAccount]) -> Terms:
    """What the boxes say before anybody ticks: what the app asked for, everything where it did not say."""
    if details is None:
        return EVERYTHING
    named = details.accounts
    return _terms(
        {account.id for account in owned},
        {
            account.id
            for account in owned
            if named is None or any(each.is_of(account.id, account.iban) for each in named)
        },
        later=details.is_with_later_accounts,
        figures_only=not details.is_with_bookings,
        full_numbers=details.full_numbers,
    )


def chosen_terms(
    form: Mapping[str, str], ticked: frozenset[str], owned: Sequence[StoredAccount], *, preset: Terms = EVERYTHING
) -> Terms:
    """What the boxes say; raises NothingChosen, and Mistake for an account that is not one of the person's.

    A form without `lasts` is no form of a browser, which always sends a select: it grants what the boxes say before
    anybody ticks. Everything ticked is everything there is and will be; an account that comes later is covered where
    that is ticked, unless it was there before and was not.
    """
    if "lasts" not in form:
        if preset.accounts == () and not preset.all_but:
            raise NothingChosen
        return preset
    ids = {account.id for account in owned}
    if not ticked <= ids:
        raise Mistake("bad_form")
    later = "later_accounts" in form
    if not ticked and not later:
        raise NothingChosen
    return _terms(ids, ticked, later=later, figures_only="bookings" not in form, full_numbers="full_numbers" in form)


def chosen_lifetime(form: Mapping[str, str], *, preset_days: int | None = None) -> timedelta | None:
    """How long access lasts; None where neither form nor app says. Raises Mistake."""
    if "lasts" not in form:
        return timedelta(days=preset_days) if preset_days is not None else None
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


def _terms(ids: Set[str], ticked: Set[str], *, later: bool, figures_only: bool, full_numbers: bool) -> Terms:
    left_out = tuple(sorted(ids - ticked))
    listed = (left_out or None) if later else tuple(sorted(ticked))
    return Terms(
        accounts=listed,
        all_but=later and listed is not None,
        figures_only=figures_only,
        full_numbers=full_numbers,
    )
