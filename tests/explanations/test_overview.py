"""GET /overview: what nine operations answer, in one."""

import gzip

import httpx
import pytest

from tests.explanations.conftest import Holder, Service, body_of

pytestmark = pytest.mark.requirement("page.tasks")


def test_each_member_is_what_its_own_operation_answers(demo_service: Service) -> None:
    client, today = demo_service.named("demo"), demo_service.services.clock.today()
    whole = body_of(client, "/overview")
    accounts = whole["accounts"]["accounts"]
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
    plain = client.get("/overview", headers={"accept-encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.json()) == (False, body_of(client, "/overview"))
