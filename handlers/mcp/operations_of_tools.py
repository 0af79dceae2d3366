"""Lets tools call the operations of the contract: with arguments read like those of a request, the same functions,
turns and answers."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct
from starlette.datastructures import Headers

from auth.principal import Principal
from handlers.mcp.schemas import Contract
from handlers.names import Json
from handlers.web.app import BASE_PATH
from handlers.web.request import Operation, Request
from handlers.web.steps.dispatch import Calling, calling
from handlers.web.steps.parameters import Parameters
from handlers.web.steps.turns import Turns
from handlers.web.steps.validation import not_found_sentence


class _OperationDescription(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    parameters: Parameters
    has_body: bool
    call: Calling


class ContractOperations:
    """Calls operations of the contract by operationId, as tools do; raises what the operations raise
    (handlers.web.errors)."""

    def __init__(
        self, contract: Contract, functions: Mapping[str, Operation], turns: Turns, *, public_path: str
    ) -> None:
        self._descriptions = {
            operation_id: _OperationDescription(
                method=method.upper(),
                path=path,
                parameters=Parameters(
                    contract.parameters(operation_id),
                    not_found=not_found_sentence(operation["responses"]),
                ),
                has_body="requestBody" in operation,
                call=calling(functions[operation_id], turns),
            )
            for operation_id, (path, method, operation) in contract.operations.items()
        }
        self._public_path = public_path
        self.turns = turns

    async def ask(
        self, caller: Principal, operation_id: str, *, body: Json | None = None, **arguments: Any
    ) -> tuple[Json, Mapping[str, str]]:
        """Body and headers of an operation's answer to `caller`, in the user's turn; `arguments` have the contract's
        names, and None is left out. The request's `body` is not held against the contract: the operation checks it.
        Numbers with decimals are exact, with the digits that the operation wrote."""
        described = self._descriptions[operation_id]
        given = {name: f"{value}" for name, value in arguments.items() if value is not None}
        in_path = {name: value for name, value in given.items() if f"{{{name}}}" in described.path}
        query = urlencode({name: value for name, value in given.items() if name not in in_path})
        read = described.parameters.read(in_path, query.encode())
        if described.has_body:
            read["body"] = body
        path = described.path.format_map({name: quote(value, safe="") for name, value in in_path.items()})
        request = Request(
            caller=caller,
            method=described.method,
            path=f"{self._public_path}{BASE_PATH}{path}",
            query=query,
            headers=Headers({}),
            client_address="",
        )
        answer = await described.call(request, read)
        written = answer.body if isinstance(answer.body, bytes) else orjson.dumps(answer.body)
        answered: Json = json.loads(written, parse_float=Decimal)
        return answered, answer.headers
