"""GET /overview: what nine operations answer, in one."""

import gzip
from datetime import timedelta

import httpx
import pytest

from auth.scopes import SCOPES
from storage import users
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder, Service, body_of

pytestmark = pytest.mark.requirement("page.tasks")


@pytest.mark.parametrize("most", [None, 1], ids=["all", "of one account"])
def test_each_member_is_what_its_own_operation_answers(demo_service: Service, most: int | None) -> None:
    client, today = demo_service.named("demo"), demo_service.services.clock.today()
    if most is not None:
        first = body_of(client, "/accounts")["accounts"][0]["id"]
        user_id = users.get_by_name(demo_service.services.everybody, "demo").id
        issued = demo_service.services.authorization.issue_token(
            user_id, frozenset(SCOPES), timedelta(hours=1), terms=Terms(accounts=(first,))
        )
        client = demo_service.named("demo")
        client.headers["authorization"] = f"Bearer {issued}"
    whole = body_of(client, "/overview")
    accounts = whole["accounts"]["accounts"]
    assert len(accounts) == (most or 4)
    ids = ",".join(each["id"] for each in accounts)
    spendable = ",".join(each["id"] for each in accounts if each["accountType"] in ("checking", "credit_card"))
    asked = {
        "profile": "/profile",
        "accounts": "/accounts",
        "notices": "/notices?state=open&limit=200",
        "snapshot": f"/snapshot?accountIds={ids}",
        "balances": f"/balances?dateFrom={today.replace(year=today.year - 1)}&dateTo={today}&every=day",
        "cashflow": f"/cashflow?accountIds={ids}&months=12",
        "latest": f"/transactions?accountIds={ids}&perPage=8",
        "recurring": f"/subscriptions/details?accountIds={ids}&status=ongoing&withCharges=false",
        "forecast": f"/forecast?accountIds={spendable}&days=30",
    }
    assert whole.keys() == asked.keys()
    for member, address in asked.items():
        path, _, query = address.partition("?")
        alone = body_of(client, path, **dict(httpx.QueryParams(query)))
        assert whole[member] == alone, member


def test_it_is_compressed_for_who_reads_that_and_without_an_account_it_is_short(
    demo_service: Service, holder: Holder
) -> None:
    assert holder.get("/overview").keys() == {"profile", "accounts", "notices"}
    client = demo_service.named("demo")
    with client.stream("GET", "/overview", headers={"accept-encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert b'"profile"' in gzip.decompress(b"".join(answer.iter_raw()))
    ids = ",".join(each["id"] for each in body_of(client, "/accounts")["accounts"])
    for path in (
        "/categories",
        f"/cashflow/2026-10/transactions?accountIds={ids}",
        "/transactions/totals?groupBy=merchant",
    ):
        answer = client.get(path, headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip", answer.text
    plain = client.get("/overview", headers={"accept-encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.json()) == (False, body_of(client, "/overview"))
