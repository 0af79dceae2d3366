"""The choices of a person on the consent and account pages: accounts, bookings, whole account numbers, and how long."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from msgspec import Struct

from auth.authorization_details import AccountInformation
from auth.scopes import TICKED_SCOPES
from auth.tokens.access_check import coverage_of
from handlers.oauth.mistakes import Mistake
from storage.accounts import StoredAccount
from storage.oauth.grants import EVERYTHING, Terms

AS_BEFORE = "as before"  # instead of a number of days: the access keeps its present end


class NothingChosen(Exception):
    """The form ticks no account, nor the box for later accounts."""


class Choices(Struct, frozen=True, kw_only=True):
    """The choices in a form's boxes: the ticked accounts, `later` ones, `bookings` beside figures, whole account
    numbers, and in `changes` the ticked ones of TICKED_SCOPES. `lasts` is the chosen number of days or AS_BEFORE, empty
    where nothing was chosen."""

    accounts: frozenset[str]
    later: bool
    bookings: bool
    full_numbers: bool
    lasts: str = ""
    changes: frozenset[str] = frozenset()

    def terms(self, owned: Sequence[StoredAccount], *, held: Terms = EVERYTHING) -> Terms:
        """The terms of a grant with these choices, for a form that showed the accounts `owned`. Accounts added later
        are covered if their box is ticked. Accounts that the form does not show, such as hidden ones, stay covered or
        left out as under the terms `held`, or follow the box for later accounts where that was changed. Raises
        NothingChosen, and Mistake for a ticked account that is not one of `owned`."""
        ids = {account.id for account in owned}
        if not self.accounts <= ids:
            raise Mistake("bad_form")
        if not self.accounts and not self.later:
            raise NothingChosen
        named = ids - self.accounts if self.later else set(self.accounts)
        if self.later == held.all_but:
            named |= set(held.accounts or ()) - ids
        return Terms(
            accounts=tuple(sorted(named)) if named or not self.later else None,
            all_but=self.later and bool(named),
            figures_only=not self.bookings,
            full_numbers=self.full_numbers,
        )

    def lifetime(self, days: Sequence[int]) -> timedelta:
        """How long access lasts, which has to be one of these numbers of days. Raises Mistake for any other, and where
        the form says none: what a form does not say is never a yes."""
        if self.lasts not in map(str, days):
            raise Mistake("bad_form")
        return timedelta(days=int(self.lasts))

    def boxes(self, owned: Sequence[StoredAccount]) -> list[dict[str, object]]:
        """The account boxes of the form, in the order of `owned`: id, name, bank, last four characters of the IBAN, and
        whether the box is ticked."""
        return [
            {
                "id": account.id,
                "name": account.name or account.bank_name,
                "bank": account.bank_name,
                "end": account.iban[-4:] if account.iban else "",
                "is_ticked": account.id in self.accounts,
            }
            for account in owned
        ]


def sent_choices(form: Mapping[str, str], ticked: frozenset[str]) -> Choices:
    """The choices that a person sent in a form; `ticked` are account ids, and a box that was not sent is not ticked."""
    return Choices(
        accounts=ticked,
        later="later_accounts" in form,
        bookings="bookings" in form,
        full_numbers="full_numbers" in form,
        lasts=form.get("lasts", ""),
        changes=frozenset(scope for scope in TICKED_SCOPES if scope in form),
    )


def preset_choices(details: AccountInformation | None, owned: Sequence[StoredAccount]) -> Choices:
    """The choices that a form shows before the person changes any: what the app asked for in its authorization details,
    or everything where it sent none."""
    if details is None:
        return choices_of(EVERYTHING, owned)
    named = details.accounts
    return Choices(
        accounts=frozenset(
            account.id
            for account in owned
            if named is None or any(each.is_of(account.id, account.iban) for each in named)
        ),
        later=details.asks_for_later_accounts,
        bookings=details.asks_for_bookings,
        full_numbers=details.full_numbers,
        lasts=str(details.lasts_days or ""),
    )


def choices_of(terms: Terms, owned: Sequence[StoredAccount]) -> Choices:
    """The choices that a form shows for a grant of these terms; for its end, AS_BEFORE."""
    coverage = coverage_of(terms)
    return Choices(
        accounts=frozenset(account.id for account in owned if coverage is None or coverage.covers(account.id)),
        later=coverage is None or coverage.is_all_but,
        bookings=not terms.figures_only,
        full_numbers=terms.full_numbers,
        lasts=AS_BEFORE,
    )
