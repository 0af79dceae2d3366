"""What cannot be undercut: servers that answer each operation with the bytes that the real one gave once."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from handlers.web.request import Answer, Operation, Request

CONTRACT_FILE = Path(__file__).resolve().parents[3] / "openapi.json"


def main() -> None:
    """`starlette|stack PORT BODIES FOLDER`; BODIES is a JSON file of answers by operationId, FOLDER a store with the
    users who ask."""
    name, port, bodies, folder = sys.argv[1:]
    answers = {key: value.encode() for key, value in json.loads(Path(bodies).read_text()).items()}
    if name == "starlette":
        uvicorn.run(_starlette(answers), port=int(port), log_level="error", access_log=False, proxy_headers=False)
    else:
        _serve_stack(answers, int(port), Path(folder))


def _starlette(answers: dict[str, bytes]) -> Starlette:
    """A route per operation: no token, no validation."""
    paths = json.loads(CONTRACT_FILE.read_bytes())["paths"]
    by_path = {path: item["get"]["operationId"] for path, item in paths.items() if "get" in item}
    return Starlette(
        routes=[Route(f"/api/v1{path}", _bare(answers[id_])) for path, id_ in by_path.items() if id_ in answers]
    )


def _bare(body: bytes) -> Callable[[StarletteRequest], Any]:
    async def answer(_request: StarletteRequest) -> Response:
        return Response(body, media_type="application/json")

    return answer


def _serve_stack(answers: dict[str, bytes], port: int, folder: Path) -> None:
    """Everything that a request passes on its way to an operation, and back."""
    from handlers import server
    from handlers.operations import operations
    from handlers.settings import load
    from handlers.web.sockets.listening_socket import listening_socket  # bare Starlette goes without all that
    from handlers.work.services import open_services

    settings = load({"BANKDATA_RATE_LIMIT": "off", "BANKDATA_LOG_LEVEL": "error"}, data_dir=folder)
    services = open_services(settings)
    constant = {name: _constant(body) for name, body in answers.items()}
    vars(server)["operations"] = lambda services: {**operations(services), **constant}
    with listening_socket("127.0.0.1", port) as listener:
        server.run(services, listener=listener, ready=lambda: None)


def _constant(body: bytes) -> "Operation":
    from handlers.web.request import Answer

    async def answer(_request: "Request", **_arguments: object) -> "Answer":
        return Answer(body=body)

    return answer
