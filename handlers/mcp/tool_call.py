"""One tool call being answered: who asks, which accounts are meant, and how strangers' texts in rows are fenced."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl
from anyio import to_thread
from msgspec import Struct, field
from starlette.concurrency import run_in_threadpool

from auth.principal import Principal
from handlers.mcp.catalogue import WrongArgument
from handlers.mcp.known_counterparts import Relations, relations
from handlers.mcp.masked_numbers import masked_field
from handlers.mcp.operations_of_tools import ContractOperations
from handlers.mcp.untrusted_texts import bank_text
from handlers.names import Json
from handlers.operations.reports import currency_of
from handlers.operations.selection import covered_accounts, selected_accounts
from handlers.work.cache.user_data import Need
from handlers.work.services import Services
from storage import transactions
from storage.accounts import SelectedAccounts

REF_LENGTH = 8  # hexadecimal digits: of users with a thousand accounts, one in ten thousand has two equal refs
BOOKING_REF_LENGTH = 10  # the same: of users with fifty thousand bookings, one in a thousand has two equal refs
BOOKING_REF = re.compile(rf"t_([0-9a-f]{{{BOOKING_REF_LENGTH}}})")
UNKNOWN_ACCOUNT = (
    "accountIds: names an account that this connection does not have. Call get_overview: it lists the ids."
)
Shape = TypeVar("Shape")
ROW_TEXTS = ("purpose", "counterpartName", "merchantName")


class ToolCall(Struct):
    """One tool call being answered. `accounts` are the accounts that its answer has named so far, each with a short
    `ref`; `lacking` are the currencies without a reference rate, whose amounts its figures leave out. Both grow while
    it is answered."""

    services: Services
    operations: ContractOperations
    caller: Principal
    accounts: list[Json] = field(default_factory=list)
    lacking: set[str] = field(default_factory=set)
    _refs: dict[str, str] = field(default_factory=dict)

    async def ask(self, operation_id: str, **arguments: Any) -> Json:
        """The body of an operation's answer to the caller; raises what the operation raises. Adds the currencies that
        the answer could not convert to `lacking`."""
        body, headers = await self.operations.ask(self.caller, operation_id, **arguments)
        self.lacking.update(filter(None, headers.get("unconverted-currencies", "").split(", ")))
        return body

    @property
    def unconverted_currencies(self) -> list[str]:
        """The currencies in `lacking`, sorted."""
        return sorted(self.lacking)

    @property
    def shows_numbers(self) -> bool:
        """Whether the person allowed account numbers in full."""
        return self.caller.full_numbers

    @property
    def today(self) -> str:
        """Today's calendar day as YYYY-MM-DD."""
        return self.services.clock.today().isoformat()

    async def account_ids(self, named: Sequence[str] | None) -> str | None:
        """The argument accountIds of an operation: the ids, separated by commas, of the accounts named by id or ref, or
        of all that the caller may read; None where these are none. Raises WrongArgument."""
        return ",".join((await self.select(named))[0].ids) or None

    async def select(self, named: Sequence[str] | None) -> tuple[SelectedAccounts, str]:
        """The accounts named by id or ref, or all that the caller may read, and the currency of their figures. Raises
        WrongArgument."""
        return await run_in_threadpool(self._select, named)

    def _select(self, named: Sequence[str] | None) -> tuple[SelectedAccounts, str]:
        with self.services.reader.open(self.caller.user_id, Need.ACCOUNTS) as reading:
            ids = [account.id for account in covered_accounts(reading.accounts, self.caller)]
            known = {**{ref_of(id_): id_ for id_ in ids}, **{id_: id_ for id_ in ids}}
            if named is not None and not set(named) <= known.keys():
                raise WrongArgument(UNKNOWN_ACCOUNT)
            wanted = [known[each] for each in named] if named else ids
            chosen = selected_accounts(reading.accounts, ",".join(wanted), self.caller)
            return chosen, currency_of(self.services, reading, chosen.accounts)

    def mention(self, account: Mapping[str, Any]) -> str:
        """Add the account to `accounts`, unless it is there, with its names fenced and its IBAN masked, and return its
        `ref`; `account` is a shape of the contract."""
        id_: str = account["id"]
        if id_ not in self._refs:
            self._refs[id_] = ref_of(id_)
            texts, _flags = bank_text(account_texts(account))
            iban = account.get("iban")
            self.accounts.append(
                {"ref": self._refs[id_], "iban": masked_field(iban) if iban else None, "bank_text": texts}
            )
        return self._refs[id_]

    async def booking_id(self, named: str) -> str:
        """The id of the booking with this ref, if there is exactly one; else what is named, which may be an id."""
        found = BOOKING_REF.fullmatch(named)
        if found is None:
            return named
        user_id = self.caller.user_id
        store, beginning = self.services.of(user_id), f"txn_{found[1]}"
        ids = await run_in_threadpool(transactions.ids_beginning, store, user_id, beginning)
        return ids[0] if len(ids) == 1 else named

    async def rows(self, transactions: Sequence[Json], *more: str) -> list[Json]:
        """Transactions of the contract as rows of a list, with fenced texts and flags; `more` names further members
        that each row keeps."""
        known = await self.relations(transactions)
        return await self.shape(lambda: [self._row(each, more, known) for each in transactions])

    async def shape(self, make: Callable[[], Shape]) -> Shape:
        """The result of `make`, which fences strangers' texts: run in a thread, since the event loop belongs to
        everybody; one at a time in all, and each user has one place in that line."""
        async with self.operations.turns.of(self.caller.user_id):
            return await to_thread.run_sync(make, limiter=self.operations.turns.shaping)

    async def relations(self, transactions: Sequence[Json]) -> Relations:
        """The user's earlier payments to these transactions' counterparts, from accounts that the caller may read."""
        return await run_in_threadpool(self._relations, transactions)

    def _relations(self, transactions: Sequence[Json]) -> Relations:
        with self.services.reader.open(self.caller.user_id, Need.FIGURES) as reading:
            covered = covered_accounts(reading.accounts, self.caller)
            ids = [account.id for account in covered]
            return relations(transactions, reading.figures.filter(pl.col("account_id").is_in(ids)), covered)

    def _row(self, row: Json, more: Sequence[str], known: Relations) -> Json:
        texts = {name: row[name] for name in ROW_TEXTS}
        if texts["merchantName"] == texts["counterpartName"]:
            del texts["merchantName"]
        fenced, flags = bank_text(texts, more_flags=known.flags(row), is_known=known.is_known(row))
        return {
            "ref": booking_ref(row["id"]),
            "bookingDate": day(row["bookingDate"]),
            "amount": row["amount"],
            "currency": row["currency"],
            "account": self.mention(row["bankAccount"]),
            "category": row["category"],
            "type": row["type"],
            **{name: row[name] for name in more},
            "flags": flags,
            "bank_text": fenced,
        }


def ref_of(account_id: str) -> str:
    """The short name of an account, `a_` and the first eight characters of its id, so that it never changes."""
    return f"a_{account_id.removeprefix('acc_')[:REF_LENGTH]}"


def booking_ref(transaction_id: str) -> str:
    """The short name of a booking, `t_` and the first ten characters of its id, so that it never changes."""
    return f"t_{transaction_id.removeprefix('txn_')[:BOOKING_REF_LENGTH]}"


def account_texts(account: Mapping[str, Any]) -> dict[str, str | None]:
    """The names in an account of the contract that others wrote: its own and its bank's."""
    return {"accountName": account.get("accountName"), "bankName": account["bankConnection"]["bankName"]}


def day(moment: str | None) -> str | None:
    """The calendar day, YYYY-MM-DD, of a date-time of the contract, which writes days as midnight; None for None."""
    return moment[:10] if moment else None
