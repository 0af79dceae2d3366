"""What an app does not see of one account it does not see in the account that this one is merged into."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from auth.principal import Principal
from auth.scopes import SCOPES
from handlers.commands.connections import connect_bank
from handlers.commands.control_socket import CommandError
from handlers.commands.table import perform
from handlers.operations.accounts import merge_account
from handlers.web.errors import BadRequest
from handlers.web.request import Request
from storage import accounts, connections
from storage.oauth.grants import Grant, Terms
from tests.imports.household import Household
from tests.imports.test_accounts import JANUARY, THE_SAME, mt940

Write = Callable[..., Path]


@pytest.fixture
def two(eva: Household, write: Write) -> tuple[str, str]:
    """The ids of two accounts that can be one."""
    for number in "12":
        eva.bring(write(f"{number}.sta", mt940(number, ("0102", "C", f"{number},00", "x"))))
    first, second = accounts.of_user(eva.services.everybody, eva.user.id)
    return first.id, second.id


def allow(eva: Household, terms: Terms) -> None:
    eva.services.authorization.issue_token(eva.user.id, frozenset(SCOPES), timedelta(hours=1), terms=terms)


def grants(eva: Household) -> list[Grant]:
    return [each.grant for each in eva.services.authorization.grants.connected_apps(eva.user.id)]


def deeds(eva: Household) -> list[str]:
    return [
        each.operation for each in eva.services.authorization.record.overview(eva.user.id, within=timedelta(days=1))
    ]


@pytest.mark.requirement("grants.merged")
@pytest.mark.parametrize(("named", "all_but", "left"), [([0], True, [0, 1]), ([1], False, [])])
def test_an_app_that_saw_one_of_two_accounts_does_not_see_the_merged_one(
    eva: Household, two: tuple[str, str], named: list[int], all_but: bool, left: list[int]
) -> None:
    allow(eva, Terms(accounts=tuple(two[each] for each in named), all_but=all_but))
    perform(eva.services, "accounts merge", {"user": "eva", "account": two[0], "into": two[1]}, eva)
    (grant,) = grants(eva)
    assert set(grant.terms.accounts or ()) == {two[each] for each in left}
    assert "narrowGrant" in deeds(eva)


@pytest.mark.requirement("grants.merged")
@pytest.mark.parametrize(("named", "all_but"), [(None, False), ([0, 1], False), ([0], False), ([1], True)])
@pytest.mark.sampled
def test_what_shows_no_more_after_a_merge_stays_as_it_is(
    eva: Household, two: tuple[str, str], named: list[int] | None, all_but: bool
) -> None:
    terms = Terms(accounts=tuple(two[each] for each in named) if named is not None else None, all_but=all_but)
    allow(eva, terms)
    perform(eva.services, "accounts merge", {"user": "eva", "account": two[0], "into": two[1]}, eva)
    (grant,) = grants(eva)
    assert grant.terms == terms
    assert "narrowGrant" not in deeds(eva)


@pytest.mark.requirement("grants.merged")
@pytest.mark.requirement("accounts.overlap")
def test_an_app_keeps_an_account_that_turns_out_to_be_another_one_too(eva: Household, write: Write) -> None:
    eva.bring(write("a.csv", JANUARY))
    n26 = accounts.resolve(eva.services.everybody, eva.user.id, "N26").id
    allow(eva, Terms(accounts=(n26,)))
    eva.bring(write("a.sta", THE_SAME))
    (asked,) = (each for each in accounts.every(eva.services.everybody, eva.user.id) if each.same_as)
    perform(eva.services, "accounts merge", {"user": "eva", "account": asked.id, "into": n26}, eva)
    assert [grant.terms.accounts for grant in grants(eva)] == [(n26,)]
    assert "narrowGrant" not in deeds(eva)


@pytest.mark.requirement("grants.merged")
def test_only_a_grant_that_sees_the_target_alone_would_see_more(eva: Household, two: tuple[str, str]) -> None:
    allow(eva, Terms(accounts=(two[0],), all_but=True))
    held = eva.services.authorization.grants
    assert len(held.widened_by_merge(eva.user.id, source_id=two[0], target_id=two[1])) == 1
    assert held.widened_by_merge(eva.user.id, source_id=two[1], target_id=two[0]) == []


@pytest.mark.requirement("grants.merged")
def test_a_merge_that_is_refused_changes_no_grant(eva: Household, write: Write, two: tuple[str, str]) -> None:
    eva.bring(write("usd.sta", mt940("3", ("0102", "C", "1,00", "x")).replace("EUR", "USD")))
    dollars = next(each.id for each in accounts.of_user(eva.services.everybody, eva.user.id) if each.currency == "USD")
    allow(eva, Terms(accounts=(two[0],)))
    with pytest.raises(CommandError, match="different currencies"):
        perform(eva.services, "accounts merge", {"user": "eva", "account": dollars, "into": two[0]}, eva)
    caller = Principal(user_id=eva.user.id, client_id="", scopes=frozenset(), grant_id=None, has_subscription=True)
    request = Request(caller=caller, method="POST", path="", query="", headers={}, client_address="")
    with pytest.raises(BadRequest, match="different currencies"):
        merge_account(eva.services, request, id=dollars, dry_run=False, body={"into": two[0]})
    assert [grant.terms.accounts for grant in grants(eva)] == [(two[0],)]


@pytest.mark.requirement("oauth.record")
@pytest.mark.long
def test_what_is_done_to_accounts_imports_subscription_and_banks_is_recorded(
    eva: Household, write: Write, two: tuple[str, str]
) -> None:
    def done(what: str, /, **arguments: object) -> list[str]:
        perform(eva.services, what, {"user": "eva", **arguments}, eva)
        return deeds(eva)

    done("accounts hide", account=two[0], is_hidden=True)
    done("accounts rename", account=two[0], name="Old")
    perform(eva.services, "users subscription", {"name": "eva", "active": True}, eva)
    assert "changeSubscription" in done("accounts show", account=two[0], is_hidden=False)
    record = eva.services.authorization.record.overview(eva.user.id, within=timedelta(days=1))
    assert [each.calls for each in record if each.operation == "changeAccount"] == [3]
    assert "mergeAccount" in done("accounts merge", account=two[0], into=two[1])
    brought = eva.bring(write("3.sta", mt940("3", ("0102", "C", "3,00", "x"))))
    assert "undoImport" in done("imports undo", import_id=brought)
    assert "deleteAccount" in done("accounts delete", account=two[1])
    bank: Any = {"connector": "demo", "bank": None, "settings": {"household": "solo"}, "fault": None}
    connect_bank(eva.services, eva, user=eva.user, **bank)
    assert ("connectBank" in deeds(eva), "renewBank" in deeds(eva)) == (True, False)
    connect_bank(eva.services, eva, user=eva.user, **bank)
    assert "renewBank" in deeds(eva)
    held = connections.of_user(eva.services.everybody, eva.user.id)
    (connection,) = [each for each in held if each.connector != "files"]
    assert "disconnectBank" in done("connections remove", connection_id=connection.id)
