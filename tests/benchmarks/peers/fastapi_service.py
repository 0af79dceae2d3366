"""The same interface by FastAPI and SQLAlchemy 2 (Core), over SQLite or PostgreSQL, written as well as we could.

    python tests/benchmarks/peers/fastapi_service.py sqlite|postgresql FOLDER PORT TODAY

Statements are made once and compiled once; orjson writes the answers; a token costs a look into a dictionary. SQLite is
asked on the event loop, which it keeps for less time than a thread would cost; PostgreSQL is asked in threads, so that
it works while we do.
"""

import functools
import inspect
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

import orjson
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Response
from sqlalchemy import Engine, create_engine, event, text

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from analytics.letters import fold, plain
from analytics.periods import last_30_days, months_back
from tests.benchmarks.peers import postgresql
from tests.benchmarks.peers.fill import SQLITE_FILE

LISTED = (
    "t.id, t.amount, t.currency, t.booking_date, t.value_date, t.merchant_name, t.counterpart_name,"
    " t.counterpart_iban, t.mandate_reference, t.type, t.category, t.purpose, t.account_id, a.iban, a.name, a.bank_name"
)
JOINED = "FROM transactions t JOIN accounts a ON a.id = t.account_id"
Json = dict[str, Any]


def service(engine: Engine, people: dict[str, str], *, today: date, in_threads: bool) -> FastAPI:
    app = FastAPI(openapi_url=None)
    position = "strpos" if engine.dialect.name == "postgresql" else "instr"
    month = "to_char(booking_date, 'YYYY-MM')" if engine.dialect.name == "postgresql" else "substr(booking_date, 1, 7)"

    async def user(authorization: Annotated[str, Header()] = "") -> str:
        found = people.get(authorization.removeprefix("Bearer "))
        if found is None:
            raise HTTPException(401)
        return found

    User = Annotated[str, Depends(user)]

    def get(path: str) -> Callable[[Callable[..., Json]], None]:
        def added(function: Callable[..., Json]) -> None:
            def answered(*arguments: Any, **named: Any) -> Response:
                return Response(orjson.dumps(function(*arguments, **named)), media_type="application/json")

            async def answered_at_once(*arguments: Any, **named: Any) -> Response:
                return answered(*arguments, **named)

            called = functools.wraps(function)(answered if in_threads else answered_at_once)
            called.__signature__ = inspect.signature(function, eval_str=True).replace(return_annotation=Response)  # type: ignore[attr-defined]  # what inspect looks for
            app.get(f"/api/v1{path}")(called)

        return added

    @functools.cache
    def listing(*filters: str) -> tuple[Any, Any]:
        where = " AND ".join(("t.user_id = :user", *filters))
        order = "ORDER BY t.booking_date DESC, t.id DESC LIMIT :limit OFFSET :offset"
        return (
            text(f"SELECT count(*) FROM transactions t WHERE {where}"),
            text(f"SELECT {LISTED} {JOINED} WHERE {where} {order}"),
        )

    one = text(f"SELECT {LISTED}, t.created_at {JOINED} WHERE t.user_id = :user AND t.id = :id")
    of_user = text("SELECT * FROM accounts WHERE user_id = :user")
    by_month = text(
        f"SELECT {month} AS month, sum(CASE WHEN amount >= 0 THEN amount ELSE 0 END),"
        " -sum(CASE WHEN amount < 0 THEN amount ELSE 0 END) FROM transactions"
        " WHERE user_id = :user AND booking_date >= :since AND booking_date <= :until GROUP BY 1"
    )
    by_category = text(
        "SELECT category, -sum(amount) AS spent FROM transactions WHERE user_id = :user"
        " AND booking_date >= :since AND booking_date <= :until AND NOT (amount > 0 AND category = 'SALARY')"
        " GROUP BY category HAVING sum(amount) < 0 ORDER BY spent DESC, category"
    )
    recurring = text("SELECT found FROM subscriptions WHERE user_id = :user")

    @get("/transactions")
    def list_transactions(
        user: User,
        category: str | None = None,
        search: str | None = None,
        date_from: Annotated[date | None, Query(alias="dateFrom")] = None,
        date_to: Annotated[date | None, Query(alias="dateTo")] = None,
        page: Annotated[int, Query(ge=1)] = 1,
        per_page: Annotated[int, Query(ge=1, le=100, alias="perPage")] = 50,
    ) -> Json:
        filters, values = [], {"user": user}
        for name, value, condition in (
            ("category", category, "t.category = :category"),
            ("since", date_from and date_from.isoformat(), "t.booking_date >= :since"),
            ("until", date_to and date_to.isoformat(), "t.booking_date <= :until"),
        ):
            if value:
                filters.append(condition)
                values[name] = value
        for number, word in enumerate((search or "").split()):
            filters.append(f"({position}(t.search_text, :f{number}) > 0 OR {position}(t.search_text, :p{number}) > 0)")
            values |= {f"f{number}": fold(word), f"p{number}": plain(word)}
        count, rows = listing(*filters)
        with engine.connect() as connection:
            total = connection.execute(count, values).scalar_one()
            found = connection.execute(rows, {**values, "limit": per_page, "offset": (page - 1) * per_page}).all()
        return {
            "transactions": [transaction(row) for row in found],
            "pagination": {"page": page, "perPage": per_page, "total": total, "pageCount": -(-total // per_page)},
        }

    @get("/transactions/{id}")
    def get_transaction(user: User, id: str) -> Json:
        with engine.connect() as connection:
            row = connection.execute(one, {"user": user, "id": id}).first()
        if row is None:
            raise HTTPException(404)
        missing = ("counterpartBic", "counterpartBankName", "counterpartCreditorId", "counterpartDebitorId")
        codes = ("bankTransactionCode", "sepaPurposeCode")
        return {
            **transaction(row),
            **dict.fromkeys((*missing, *codes)),
            "isPotentialDuplicate": False,
            "isAdjustingEntry": False,
            "createdAt": row[16],
        }

    @get("/accounts")
    def list_accounts(user: User) -> Json:
        with engine.connect() as connection:
            rows = connection.execute(of_user, {"user": user}).all()
        return {
            "accounts": [
                {
                    "id": row.id,
                    "accountName": row.name,
                    "iban": row.iban,
                    "accountType": row.kind,
                    "balance": float(row.balance),
                    "currency": row.currency,
                    "lastSyncedAt": row.last_synced_at,
                    "bankConnection": {"bankName": row.bank_name, "status": row.status},
                }
                for row in rows
            ]
        }

    @get("/cashflow")
    def get_cashflow(user: User, months: Annotated[int, Query(ge=1)] = 6) -> Json:
        shown = months_back(today, months)
        until = (shown[-1] + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        values = {"user": user, "since": shown[0].isoformat(), "until": until.isoformat()}
        with engine.connect() as connection:
            sums = {row[0]: (float(row[1]), float(row[2])) for row in connection.execute(by_month, values)}
        figures = [(f"{day:%Y-%m}", *sums.get(f"{day:%Y-%m}", (0.0, 0.0))) for day in shown]
        return {
            "cashflow": [
                {"month": name, "income": round(came, 2), "expenses": round(went, 2), "net": round(came - went, 2)}
                for name, came, went in figures
            ]
        }

    @get("/snapshot")
    def get_snapshot(user: User) -> Json:
        since, until = last_30_days(today)
        with engine.connect() as connection:
            accounts = connection.execute(of_user, {"user": user}).all()
            values = {"user": user, "since": since.isoformat(), "until": until.isoformat()}
            costs = connection.execute(by_category, values).all()
        total = round(sum(float(row[1]) for row in costs), 2)
        return {
            "totalBalance": round(sum(float(row.balance) for row in accounts), 2),
            "accountCount": len(accounts),
            "accounts": [
                {"name": row.name, "bank": row.bank_name, "balance": float(row.balance), "currency": row.currency}
                for row in accounts
            ],
            "last30Days": {
                "totalExpenses": total,
                "topCategories": [
                    {
                        "category": row[0],
                        "amount": round(float(row[1]), 2),
                        "percentage": int(100 * float(row[1]) / total + 0.5),
                    }
                    for row in costs[:5]
                ],
            },
        }

    @get("/subscriptions")
    def list_subscriptions(user: User) -> Json:
        with engine.connect() as connection:
            return {
                "subscriptions": orjson.Fragment(connection.execute(recurring, {"user": user}).scalar_one().encode())
            }

    return app


def transaction(row: Any) -> Json:
    id_, amount, currency, booked, valued, merchant, name, iban, mandate, type_, category, purpose = row[:12]
    account, account_iban, account_name, bank = row[12:16]
    return {
        "id": id_,
        "amount": float(amount),
        "currency": currency,
        "bookingDate": f"{booked}T00:00:00.000Z",
        "valueDate": f"{valued}T00:00:00.000Z",
        "merchantName": merchant,
        "counterpartName": name,
        "counterpartIban": iban,
        "counterpartMandateReference": mandate,
        "type": type_,
        "category": category,
        "purpose": purpose,
        "bankAccount": {
            "id": account,
            "iban": account_iban,
            "accountName": account_name,
            "bankConnection": {"bankName": bank},
        },
    }


def opened(store: str, folder: Path, stack: ExitStack) -> Engine:
    if store == "postgresql":
        address = stack.enter_context(postgresql.running(folder))
        parts = dict(part.split("=", 1) for part in address.split())
        url = f"postgresql+psycopg://{parts['user']}@/{parts['dbname']}?host={parts['host']}"
        # psycopg prepares what it has seen five times
        return create_engine(url, pool_size=16, max_overflow=24, isolation_level="AUTOCOMMIT")
    engine = create_engine(f"sqlite:///{folder / SQLITE_FILE}", isolation_level="AUTOCOMMIT")

    @event.listens_for(engine, "connect")
    def _settings(connection: Any, _record: object) -> None:
        connection.executescript("PRAGMA query_only = ON; PRAGMA cache_size = -262144; PRAGMA mmap_size = 4294967296;")

    return engine


def main() -> None:
    store, folder, port, today = sys.argv[1:]
    people = json.loads((Path(folder) / "people.json").read_text())
    with ExitStack() as stack:
        engine = opened(store, Path(folder), stack)
        app = service(engine, people, today=date.fromisoformat(today), in_threads=store == "postgresql")
        uvicorn.run(app, port=int(port), log_level="error", access_log=False, loop="uvloop", http="httptools")
        engine.dispose()


if __name__ == "__main__":
    main()
