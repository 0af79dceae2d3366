"""One HTTP connection; what cannot be read as HTTP is refused in the error body of every other failure (decision 4)."""

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = (
    b"HTTP/1.1 400 Bad Request\r\n"
    b"content-type: application/json\r\n"
    b"cache-control: no-store\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"connection: close\r\n"
    b"content-length: %d\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """uvicorn's connection, which would refuse in plain text."""

    def send_400_response(self, msg: str) -> None:
        """The refusal, and the end of the connection: where the next request begins is anybody's guess."""
        content = orjson.dumps({"error": msg.removesuffix(".")})
        self.transport.write(HEAD % len(content) + content)
        self.transport.close()
