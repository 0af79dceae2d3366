"""Reads descriptions of interfaces: each once per process, whoever asks for it."""

from functools import lru_cache
from typing import Any

import orjson

from handlers.web.framework import OpenAPISpecification

# The tests check descriptions against OpenAPI's schema; at each start that took a sixth of the time (decision 133)
OpenAPISpecification.openapi_schema = {}


class _ParsedDescription(dict[str, Any]):
    """A parsed OpenAPI description whose deep copy goes through JSON: Connexion copies it twice, and copying node by
    node takes five times as long."""

    def __deepcopy__(self, _copied: dict[int, Any]) -> "_ParsedDescription":
        return _ParsedDescription(orjson.loads(orjson.dumps(self)))


@lru_cache(maxsize=16)
def specification(description: bytes) -> OpenAPISpecification:
    """Parse an OpenAPI description in JSON, with references replaced by what they refer to. All who ask for the same
    bytes get the same object: the application, which sets its base path, and the tools of assistants."""
    return OpenAPISpecification(_ParsedDescription(orjson.loads(description)))  # type: ignore[no-untyped-call]
