"""POST /mcp: answers a message; every failure becomes a JSON-RPC error."""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from auth.principal import Principal
from handlers.mcp import annotating, asking, messages, resources
from handlers.mcp.admission import PATH, admission, scope_challenge
from handlers.mcp.apps import charts
from handlers.mcp.catalogue import Catalogue, Tool, WrongArgument, catalogue
from handlers.mcp.messages import HANDSHAKE, VERSIONS, RpcError, RpcRequest
from handlers.mcp.operations_of_tools import ContractOperations
from handlers.mcp.prompts import prompts
from handlers.mcp.schemas import Contract
from handlers.mcp.tool_call import ToolCall
from handlers.mcp.tools import TOOLS
from handlers.names import Json
from handlers.operations.events.listening import HEADERS as EVENT_HEADERS
from handlers.web.app import Api
from handlers.web.descriptions import specification
from handlers.web.errors import BadRequest, Refusal, TooManyRequests
from handlers.web.errors import error_answer as refusal_answer
from handlers.web.request import Answer, Operation, Request
from handlers.web.steps.guard import FIGURES_ONLY, NOT_EVERYTHING, Authenticate
from handlers.web.steps.rate_limit import Limiter
from handlers.web.steps.turns import Turns
from handlers.work.services import Services
from storage.events import outbox

MESSAGE = "sendMessage"
CAPABILITIES: Json = {"tools": {}, "prompts": {}, "resources": {}}
LISTS_LAST_MS = 300_000  # clients list anew after five minutes what a grant allows, or when a call is refused


DESCRIPTION = (files("handlers.mcp") / "mcp-api.json").read_bytes()
INFO = orjson.loads(DESCRIPTION)["info"]
SERVER_INFO = {"name": "bankdata", "title": INFO["title"], "version": INFO["version"]}


Method = Callable[[RpcRequest, Principal], Json]


def mcp_api(
    services: Services,
    authenticate: Authenticate,
    *,
    contract: bytes,
    operations: Mapping[str, Operation],
    turns: Turns,
    limiter: Limiter,
) -> Api:
    """The description of the assistants' interface, with its one operation. `operations` are those of the contract,
    `authenticate` finds the principal of a token for assistants. Raises ValueError where handlers/mcp/tools.json and
    the code name different tools."""
    settings, described = services.settings, Contract(specification(contract).spec)
    endpoint = Endpoint(
        services,
        catalogue(described),
        ContractOperations(described, operations, turns, public_path=urlsplit(settings.public_url).path.rstrip("/")),
        limiter,
    )
    return Api(
        description=DESCRIPTION,
        operations={MESSAGE: endpoint.answer},
        failure_answer=failure_answer,
        guard=admission(authenticate, settings, limiter),
        same_paths={f"{PATH}/": PATH},
    )


class Endpoint:
    """Answers JSON-RPC messages of assistants, one per request."""

    def __init__(
        self,
        services: Services,
        tools: Catalogue,
        operations: ContractOperations,
        limiter: Limiter,
    ) -> None:
        if different := tools.tools.keys() ^ TOOLS.keys():
            raise ValueError(f"tools of handlers/mcp/tools.json and code differ: {', '.join(sorted(different))}")
        self._services = services
        self._tools = tools
        self._operations = operations
        self._limiter = limiter
        self._prompts = prompts(tools)
        both: Mapping[str, Method] = {
            "tools/list": self._list_tools,
            "prompts/list": self._list_prompts,
            "prompts/get": self._prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda message, _caller: _page(message, "resourceTemplates", []),
        }
        self._modern: Mapping[str, Method] = {"server/discover": self._discover, **both}
        self._handshake: Mapping[str, Method] = {
            "initialize": self._initialize,
            "ping": lambda _message, _caller: {},
            **both,
        }

    async def answer(self, request: Request, body: Any) -> Answer:
        """The result of a request's method or tool, or the error of a tool; an empty answer (202) to a notification. A
        call of a tool is noted in its user's access record. Raises RpcError for all other errors."""
        assert isinstance(request.headers, Headers)
        if await self._takes_answer(body, request.principal):
            return Answer(body=b"", status=202, headers={"content-type": "text/plain; charset=utf-8"})
        message = messages.read(body, request.headers)
        if message.id is None:
            return Answer(body=b"", status=202, headers={"content-type": "text/plain; charset=utf-8"})
        if message.method == "tools/call":
            return await self._call_tool(message, request, request.principal)
        if message.method == "resources/read":
            return messages.result_answer(message, await self._resource(message, request.principal))
        if message.method == "subscriptions/listen" and message.is_modern:
            return await self._listen(message, request)
        method = (self._modern if message.is_modern else self._handshake).get(message.method)
        if method is None:
            raise message.error(messages.METHOD_NOT_FOUND, "There is no such method.")
        headers = messages.session(message) if message.method == "initialize" else {}
        return messages.result_answer(message, method(message, request.principal), headers)

    def _discover(self, message: RpcRequest, _caller: Principal) -> Json:
        return {
            "supportedVersions": list(VERSIONS),
            "capabilities": _capabilities(message),
            "instructions": self._tools.instructions,
            "ttlMs": LISTS_LAST_MS,
            "cacheScope": "private" if message.shows_apps else "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO},
        }

    def _initialize(self, message: RpcRequest, _caller: Principal) -> Json:
        # The client's version if it is served, else the newest of its era
        version = message.params.get("protocolVersion")
        return {
            "protocolVersion": version if version in HANDSHAKE else HANDSHAKE[0],
            "capabilities": _capabilities(message),
            "serverInfo": SERVER_INFO,
            "instructions": self._tools.instructions,
        }

    def _list_tools(self, message: RpcRequest, caller: Principal) -> Json:
        tools = self._tools.listed_for(caller)
        if message.shows_apps:
            tools = [{**tool, "_meta": charts.META} if tool["name"] in charts.CHARTED else tool for tool in tools]
        return _page(message, "tools", tools)

    def _list_prompts(self, message: RpcRequest, caller: Principal) -> Json:
        return _page(message, "prompts", [each.listed for each in self._prompts.values() if each.is_allowed(caller)])

    def _prompt(self, message: RpcRequest, caller: Principal) -> Json:
        name = message.params.get("name")
        prompt = self._prompts.get(name) if isinstance(name, str) else None
        if prompt is None or not prompt.is_allowed(caller):
            raise message.error(messages.INVALID_PARAMS, "name: must be one that prompts/list names.")
        try:
            return prompt.result(message.params.get("arguments"))
        except WrongArgument as error:
            raise message.error(messages.INVALID_PARAMS, str(error)) from error

    def _list_resources(self, message: RpcRequest, caller: Principal) -> Json:
        drawn = [charts.RESOURCE] if message.shows_apps else []
        return _page(message, "resources", [*resources.listed_for(caller), *drawn])

    async def _resource(self, message: RpcRequest, caller: Principal) -> Json:
        uri = message.params.get("uri")
        if uri == charts.CHART and message.shows_apps:
            return {**charts.chart(), **_cache_members(message)}
        readable = resources.READABLE.get(uri) if isinstance(uri, str) else None
        if readable is None or readable.scope not in caller.scopes:
            raise message.error(messages.INVALID_PARAMS, "uri: must be one that resources/list names.")
        await self._limiter.spend("mcp", caller.grant_id or caller.user_id, refusal="Too many calls")
        body = await readable.read(ToolCall(self._services, self._operations, caller))
        self._note(caller, readable.operation)
        kept = {"ttlMs": 0, "cacheScope": "private"} if message.is_modern else {}
        return {**resources.contents(readable.listed["uri"], body), **kept}

    async def _listen(self, message: RpcRequest, request: Request) -> Answer:
        user_id = request.principal.user_id
        after = await run_in_threadpool(outbox.position, self._services.of(user_id), user_id)
        return await resources.subscription(self._services, request, message, after)

    def _note(self, caller: Principal, name: str, *, is_refused: bool = False) -> None:
        self._services.authorization.record.note(
            caller.user_id, name, grant_id=caller.grant_id or "", client_id=caller.client_id, is_refused=is_refused
        )

    async def _takes_answer(self, body: Any, caller: Principal) -> bool:
        """Whether the message answers a question of ours, which then goes on."""
        told = messages.answer_in(body)
        if told is None:
            return False
        await self._limiter.spend("mcp", caller.grant_id or caller.user_id, refusal="Too many calls")
        id_, said = told
        return await run_in_threadpool(self._services.authorization.errands.answer, id_, asking.asked_by(caller), said)

    async def _call_tool(self, message: RpcRequest, request: Request, caller: Principal) -> Answer:
        name = message.params.get("name")
        tool = self._tools.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise message.error(messages.INVALID_PARAMS, f"name: must be one of {', '.join(self._tools.tools)}.")
        if not message.is_modern and not asking.is_possible(request):
            message = replace(message, elicits=False)
        answer, is_refused = await self._tool_answer(tool, message, caller)
        self._note(caller, tool.name, is_refused=is_refused)
        question = answer.body["result"] if isinstance(answer.body, dict) and "result" in answer.body else {}
        if message.is_modern or "inputRequests" not in question:
            return answer

        async def go_on(said: str, caller: Principal) -> Json:
            params = {**message.params, "inputResponses": {annotating.CONFIRMATION: {"action": said}}}
            done = await self._call_tool(replace(message, params=params), request, caller)
            body: Json = done.body
            return body

        self._services.streams.check(caller)
        return Answer(body=asking.PersonAsked(self._services, request, question, go_on), headers=EVENT_HEADERS)

    async def _tool_answer(self, tool: Tool, message: RpcRequest, caller: Principal) -> tuple[Answer, bool]:
        """The answer to a call of a tool, and whether it is counted as refused, as all errors are."""
        scopes = tool.scopes_for(message.params.get("arguments"))
        is_more = scopes != tool.scopes  # which is about all accounts, as the operations are that it calls
        if tool.is_hidden(caller) or (is_more and not caller.is_whole):
            said = FIGURES_ONLY if caller.figures_only else NOT_EVERYTHING
            error = RpcError(messages.NOT_ALLOWED, said, id_=message.id, status=403)
            return messages.error_answer(error), True
        if not scopes <= caller.scopes:
            # A client that can ask for more does so only when HTTP says so, in either era
            challenge = scope_challenge(self._services.settings.public_url, scopes)
            needed = " ".join(sorted(scopes))
            error = RpcError(
                messages.NOT_ALLOWED, f"Insufficient scope. Required: {needed}", id_=message.id, status=403
            )
            return messages.error_answer(error, challenge.too_narrow), True
        try:
            result = await self._result(tool, message, caller)
        except (WrongArgument, Refusal) as error:
            result = {"content": [{"type": "text", "text": _advice(error)}], "isError": True}
        return messages.result_answer(message, result), result.get("isError", False)

    async def _result(self, tool: Tool, message: RpcRequest, caller: Principal) -> Json:
        await self._limiter.spend("mcp", caller.grant_id or caller.user_id, refusal="Too many calls")
        arguments = tool.arguments(message.params.get("arguments"))
        if tool.name == annotating.annotate_transaction.__name__ and message.elicits and not arguments["dryRun"]:
            answers = message.params.get("inputResponses")
            said = answers.get(annotating.CONFIRMATION) if isinstance(answers, dict) else None
            if said is None:
                return await annotating.question(ToolCall(self._services, self._operations, caller), arguments)
            arguments["dryRun"] = not isinstance(said, dict) or said.get("action") != "accept"
        answer = await TOOLS[tool.name](ToolCall(self._services, self._operations, caller), **arguments)
        text = orjson.dumps(answer, default=messages.exact_number).decode()
        content = [{"type": "text", "text": text}]
        return {"content": content, "structuredContent": orjson.Fragment(text), "isError": False}


def _page(message: RpcRequest, kind: str, listed: Sequence[Json]) -> Json:
    """The result of a list method, with all entries on its only page; raises RpcError for a cursor."""
    if message.params.get("cursor") is not None:
        raise message.error(messages.INVALID_PARAMS, f"cursor: all {kind} are on one page.")
    return {kind: listed, **_cache_members(message)}


def _cache_members(message: RpcRequest) -> Json:
    """The members of a result that say how long the client may keep it; none in the handshake era, which does not know
    them."""
    return {"ttlMs": LISTS_LAST_MS, "cacheScope": "private"} if message.is_modern else {}


def _capabilities(message: RpcRequest) -> Json:
    able = {**CAPABILITIES, "resources": {"subscribe": True}} if message.is_modern else CAPABILITIES
    return {**able, **charts.CAPABILITIES} if message.shows_apps else able


def failure_answer(error: BaseException) -> Answer | None:
    """The answer to a failure as a JSON-RPC error, where failures of HTTP keep their status and challenge; None for one
    that is neither an RpcError nor a Refusal (`call.FailureAnswer`)."""
    if isinstance(error, RpcError):
        return messages.error_answer(error)
    if isinstance(error, BadRequest):  # can only be about the body: the description has no parameters
        return messages.error_answer(RpcError(messages.PARSE_ERROR, "The body must be JSON in UTF-8."))
    if isinstance(error, Refusal):
        said = refusal_answer(error)
        ours = messages.INTERNAL_ERROR if said.status >= 500 else messages.INVALID_REQUEST
        code = messages.NOT_ALLOWED if said.status in (401, 403) else ours
        return messages.error_answer(RpcError(code, str(error), status=said.status), said.headers)
    return None


def _advice(error: WrongArgument | Refusal) -> str:
    """The failure as a sentence with a full stop, and after too many calls with the seconds to wait."""
    sentence = str(error)
    if isinstance(error, TooManyRequests) and "seconds" not in sentence:
        sentence = f"{sentence}: wait {error.retry_after} seconds"
    return sentence if sentence.endswith((".", "!")) else f"{sentence}."
