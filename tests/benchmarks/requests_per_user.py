"""How long requests take for one user with 1,000 bookings among a million: p50 and p99 per operation, server memory.

    python tests/benchmarks/requests_per_user.py [--rows 1000000] [--rounds 300] [--warm-users 50]

A real server over a real store. Users are drawn at random, so that the blocks of the file are those of a busy server;
the answers of one user repeat, as they do when an app polls.
"""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date, datetime, timedelta
from pathlib import Path

import psutil

from auth.scopes import SCOPES
from handlers.services import open_services
from handlers.settings import load
from storage import compaction, connections, users
from storage.database import Database

ROWS_PER_USER = 1000
PATHS = {
    "GET /accounts": "/accounts",
    "GET /transactions (50 rows)": "/transactions?perPage=50",
    "GET /transactions?search": "/transactions?perPage=50&search=rewe",
    "GET /transactions/{id}": "/transactions/{id}",
    "GET /cashflow": "/cashflow",
    "GET /snapshot": "/snapshot",
    "GET /subscriptions": "/subscriptions",
}
BODY = """
SELECT (SELECT id FROM users WHERE name = 'u' || u) AS user_id, 'txn_' || md5(u || '-' || n) AS id,
 'acc_' || md5(u::TEXT) AS account_id, DATE '{today}' - (n * 730 // {rows})::INTEGER AS booking_date,
 DATE '{today}' - (n * 730 // {rows})::INTEGER AS value_date,
 CASE WHEN n % 40 = 0 THEN 2400 ELSE -((n * 7919 + u) % 9000 + 100) / 100.0 END::DECIMAL(20,5) AS amount,
 'EUR' AS currency, ['REWE', 'Netflix', 'Shell', 'Stadtwerke', 'Cafe Blume'][n % 5 + 1] AS merchant_name,
 'Counterpart ' || (n % 50) AS counterpart_name, 'DE02120300000000202051' AS counterpart_iban, NULL AS counterpart_bic,
 NULL AS counterpart_bank_name, NULL AS creditor_id, NULL AS debitor_id, 'M-' || (n % 20) AS mandate_reference,
 'card_payment' AS type, ['GROCERIES', 'SUBSCRIPTION', 'TRANSPORT', 'OTHER', 'DINING'][n % 5 + 1] AS category,
 'Purchase number ' || n || ' of the year' AS purpose, NULL AS bank_transaction_code, NULL AS purpose_code,
 FALSE AS is_potential_duplicate, FALSE AS is_adjusting_entry, now()::TIMESTAMP AS created_at,
 lower('purchase ' || ['rewe', 'netflix', 'shell', 'stadtwerke', 'cafe blume'][n % 5 + 1]) AS search_text,
 NULL AS transfer_account_id, NULL AS transfer_id, 'iso' AS type_rule, 'brand' AS category_rule,
 'brand' AS merchant_rule, NULL AS transfer_rule, 'content:' || n || '#1' AS identity, md5(n::TEXT) AS fingerprint,
 '[]' AS reference_keys, NULL AS end_to_end_id, NULL AS gvc, NULL AS swift_code, NULL AS mcc, NULL AS bank_text,
 NULL AS source_merchant_name, NULL AS original_amount, NULL AS original_currency, FALSE AS is_reversal,
 FALSE AS is_return, 'con_' || u AS connection_id, 'b' AS batch_id
FROM range({first}, {last}) AS us(u), range({rows}) AS ns(n) ORDER BY user_id, booking_date DESC, id
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--warm-users", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        count = max(1, options.rows // ROWS_PER_USER)
        tokens = _fill(Path(folder), count, options.warm_users)
        _measure(Path(folder), tokens, options.rounds)


def _fill(folder: Path, count: int, token_count: int) -> list[str]:
    services = open_services(load({}, data_dir=folder))
    now, today = services.clock.now(), services.clock.today()
    for first in range(0, count, 100):
        _progress("filling the store", first, count)
        _fill_users(services.database, first, min(first + 100, count), today, now)
    compaction.compact(services.database)
    chosen = random.Random(7).sample(range(count), min(token_count, count))
    tokens = [
        services.authorization.issue_token(
            users.named(services.database, f"u{number}").id, frozenset(SCOPES), timedelta(hours=1)
        )
        for number in chosen
    ]
    services.close()
    _progress("filling the store", count, count)
    print(file=sys.stderr)
    return tokens


def _fill_users(database: Database, first: int, last: int, today: date, now: datetime) -> None:
    for number in range(first, last):
        user = users.add(
            database, name=f"u{number}", password_hash=None, has_subscription=True, home_currency="EUR", now=now
        )
        connections.add(
            database, user_id=user.id, user_name=user.name, connector="demo", bank_name="Bank", settings={}, now=now
        )
    database.execute(
        "INSERT INTO accounts (id, user_id, connection_id, stable_key, currency, bank_name, balance, balance_date,"
        " position, created_at) SELECT 'acc_' || md5(u::TEXT), users.id, c.id, 'k', 'EUR', 'Bank',"
        " 100, $3, 0, $4 FROM range($1, $2) AS us(u) JOIN users ON users.name = 'u' || u"
        " JOIN connections c ON c.user_id = users.id",
        first,
        last,
        today,
        now,
    )
    database.execute(
        "INSERT INTO transactions BY NAME " + BODY.format(today=today, rows=ROWS_PER_USER, first=first, last=last)
    )


def _measure(folder: Path, tokens: list[str], rounds: int) -> None:
    port = 18_000 + random.randrange(10_000)
    command = [
        sys.executable,
        "-c",
        "from handlers.cli import main; main()",
        "serve",
        "--port",
        str(port),
        "--data",
        str(folder),
    ]
    server = subprocess.Popen(
        command, env={"BANKDATA_RATE_LIMIT": "off", "PATH": "/usr/bin", "BANKDATA_PUBLIC_URL": "http://127.0.0.1:8000"}
    )
    try:
        connection = _connected(port)
        ids = {
            token: _get(connection, "/transactions?perPage=1", token)[1]["transactions"][0]["id"] for token in tokens
        }
        draw = random.Random(11)
        process = psutil.Process(server.pid)
        print(f"{'operation':32}{'p50 ms':>9}{'p99 ms':>9}{'CPU ms':>9}   (CPU of the server)")
        for name, path in PATHS.items():
            times, before = [], sum(process.cpu_times()[:2])
            for _ in range(rounds):
                token = draw.choice(tokens)
                times.append(_get(connection, path.format(id=ids[token]), token)[0])
            cpu = (sum(process.cpu_times()[:2]) - before) / rounds * 1000
            times.sort()
            print(f"{name:32}{statistics.median(times):9.2f}{times[int(len(times) * 0.99)]:9.2f}{cpu:9.2f}")
        print(f"{'server memory (resident)':32}{process.memory_info().rss / 2**20:9.0f} MB")
    finally:
        server.terminate()
        server.wait()


def _connected(port: int) -> http.client.HTTPConnection:
    for _ in range(100):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.connect()
        except OSError:
            time.sleep(0.1)
        else:
            return connection
    raise SystemExit("the server did not start")


def _get(
    connection: http.client.HTTPConnection, path: str, token: str
) -> tuple[float, dict[str, list[dict[str, str]]]]:
    begun = time.perf_counter()
    connection.request("GET", "/api/v1" + path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    body = answer.read()
    elapsed = (time.perf_counter() - begun) * 1000
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
    return elapsed, json.loads(body)


def _progress(label: str, done: int, total: int) -> None:
    print(f"\r{label}: {done}/{total}", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
