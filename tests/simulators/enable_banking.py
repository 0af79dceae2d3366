"""Enable Banking and one bank behind it, written from the published descriptions: tokens, consent, sessions, pages."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe
from tempfile import gettempdir
from typing import Any
from urllib.parse import urlencode

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from tests.simulators.web_bank import Asked, Said, WebBank

APPLICATION = "0f2a7c1e-simulated-application"
BANK = "Mock Bank"
PAGE = """<!doctype html><html lang="en"><title>Mock Bank</title><h1>Mock Bank</h1>
<p>Another service wants to read your accounts.</p>
<p><a href="{path}/approve">Approve</a> <a href="{path}/deny">Deny</a></p></html>"""


def row(reference: str | None, day: str, amount: str, text: str, **more: Any) -> dict[str, Any]:
    """A booking: a minus means that money leaves the account."""
    is_debit = amount.startswith("-")
    return {
        "entry_reference": reference,
        "transaction_amount": {"currency": "EUR", "amount": amount.lstrip("-")},
        "credit_debit_indicator": "DBIT" if is_debit else "CRDT",
        "status": "BOOK",
        "booking_date": day,
        "creditor" if is_debit else "debtor": {"name": text},
        "remittance_information": [text],
        **more,
    }


@dataclass(kw_only=True)
class BankAccount:
    """An account at the bank: its lasting hash, what it holds, and which error the bank answers with."""

    hash: str
    iban: str | None
    balance: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    longest: int = 10_000  # days back that the bank tells of, to whoever does not ask for the longest time


class EnableBankingSimulator(WebBank):
    """One application, one bank, one customer; sessions end when a test says so."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.key = generate_private_key(public_exponent=65537, key_size=2048)
        self.accounts: list[BankAccount] = []
        self.other_banks: list[str] = []
        self.consents: dict[str, dict[str, Any]] = {}  # by the id in the address of the bank's page
        self.codes: dict[str, str] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.page_rows = 2

    def write_key(self, folder: Path) -> Path:
        """The application's private key, as the operator gets it."""
        path = folder / "enable-banking.pem"
        path.write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        path.chmod(0o600)
        return path

    def end_sessions(self, status: str) -> None:
        """EXPIRED, REVOKED or CLOSED, from now on."""
        for session in self.sessions.values():
            session["status"] = status

    def answer(self, asked: Asked) -> Said:
        parts = asked.path.strip("/").split("/")
        if parts[0] == "bank":
            return self._page(parts)
        if not self._is_ours(asked):
            return Said(status=401, document={"error": "UNAUTHORIZED"})
        match asked.method, parts:
            case "GET", ["aspsps"]:
                names = [BANK, *self.other_banks]
                banks = [{"name": each, "maximum_consent_validity": 7_776_000} for each in names]
                return Said(document={"aspsps": banks})
            case "POST", ["auth"]:
                id_ = token_urlsafe(12)
                self.consents[id_] = asked.document()
                return Said(document={"url": f"{self.address}/bank/{id_}", "authorization_id": id_})
            case "POST", ["sessions"]:
                return self._session(asked)
            case "GET", ["sessions", id_] if id_ in self.sessions:
                return Said(document=self.sessions[id_])
            case "DELETE", ["sessions", id_] if id_ in self.sessions:
                self.sessions[id_]["status"] = "CLOSED"
                return Said(document={"message": "OK"})
            case "GET", ["accounts", uid, what]:
                return self._account(asked, uid, what)
        return Said(status=404, document={"error": "NOT_FOUND"})

    def _is_ours(self, asked: Asked) -> bool:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        try:
            assert scheme == "Bearer"
            assert jwt.get_unverified_header(token) == {"typ": "JWT", "alg": "RS256", "kid": APPLICATION}
            claims = jwt.decode(token, self.key.public_key(), ["RS256"], audience="api.enablebanking.com")
        except (AssertionError, jwt.PyJWTError):
            return False
        return bool(claims["iss"] == "enablebanking.com" and claims["exp"] - claims["iat"] <= 86_400)

    def _page(self, parts: list[str]) -> Said:
        consent = self.consents.get(parts[1])
        if consent is None:
            return Said(status=404, text="Not found", content_type="text/html")
        if len(parts) == 2:
            return Said(text=PAGE.format(path=f"/bank/{parts[1]}"), content_type="text/html")
        if parts[2] == "approve":
            code = token_urlsafe(12)
            self.codes[code] = parts[1]
            given = {"state": consent["state"], "code": code}
        else:
            given = {"state": consent["state"], "error": "access_denied"}
        return Said(status=302, headers={"Location": f"{consent['redirect_url']}?{urlencode(given)}"})

    def _session(self, asked: Asked) -> Said:
        consent = self.consents.get(self.codes.pop(asked.document().get("code", ""), ""))
        if consent is None:
            return Said(status=422, document={"error": "WRONG_AUTHORIZATION_CODE"})
        id_ = token_urlsafe(16)
        told = [
            {
                "uid": f"{account.hash}-{id_[:6]}",
                "identification_hash": account.hash,
                "account_id": {"iban": account.iban},
                "name": f"Account {account.hash}",
                "cash_account_type": "CACC",
                "currency": "EUR",
            }
            for account in self.accounts
        ]
        access = {"valid_until": consent["access"]["valid_until"]}
        self.sessions[id_] = {
            "status": "AUTHORIZED",
            "access": access,
            "accounts": [each["uid"] for each in told],
            "accounts_data": [{name: each[name] for name in ("uid", "identification_hash")} for each in told],
        }
        return Said(document={"session_id": id_, "accounts": told, "access": access, "aspsp": consent["aspsp"]})

    def _account(self, asked: Asked, uid: str, what: str) -> Said:
        session = next((each for each in self.sessions.values() if uid in each["accounts"]), None)
        if session is None or session["status"] != "AUTHORIZED":
            return Said(status=401, document={"error": f"{session['status'] if session else 'CLOSED'}_SESSION"})
        account = next(each for each in self.accounts if uid.startswith(f"{each.hash}-"))
        if account.error:
            return Said(status=400, document={"error": account.error})
        if what == "balances":
            available = {"balance_type": "CLAV", "balance_amount": {"currency": "EUR", "amount": "9999.00"}}
            closing = {"balance_type": "CLBD", "balance_amount": {"currency": "EUR", "amount": account.balance}}
            return Said(document={"balances": [available, closing]})
        since = asked.query["date_from"]
        too_early = since < (datetime.now(UTC).date() - timedelta(days=account.longest)).isoformat()
        if too_early and asked.query.get("strategy") != "longest":
            return Said(status=422, document={"error": "WRONG_TRANSACTIONS_PERIOD"})
        rows = [each for each in account.rows if each["booking_date"] >= since]
        start = int(asked.query.get("continuation_key", "0"))
        page = [{**each, "transaction_id": token_urlsafe(6)} for each in rows[start : start + self.page_rows]]
        following = start + self.page_rows
        return Said(
            document={
                "transactions": page,
                "continuation_key": str(following) if following < len(rows) else None,
            }
        )


def serve(port: int) -> None:
    """The provider and its bank with one account, until Ctrl-C."""
    bank, today = EnableBankingSimulator(port), datetime.now(UTC).date().isoformat()
    rows = [row("r1", today, "-12.50", "Corner Cafe"), row("r2", today, "2500.00", "Employer")]
    bank.accounts = [BankAccount(hash="giro", iban="DE89370400440532013000", balance="1234.56", rows=rows)]
    key = bank.write_key(Path(gettempdir()))
    print(f"BANKDATA_ENABLE_BANKING_URL={bank.address}\nBANKDATA_ENABLE_BANKING_APPLICATION={APPLICATION}")
    print(f"BANKDATA_ENABLE_BANKING_KEY_FILE={key}", flush=True)
    bank.serve_forever()
