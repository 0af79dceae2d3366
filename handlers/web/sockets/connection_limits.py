"""Limits on clients: how many may be connected, how much each may send at once, and how long the server waits for
them."""

from msgspec import Struct

BACKLOG = 2048  # clients that wait in the kernel until they are accepted
CONNECTIONS_MAX = 1_000
CONNECTIONS_MAX_PER_ADDRESS = 250
OPEN_FILES_SHARE = 2  # connections may take up one half of the files that this process may open

HEAD_BYTES_MAX = 32_768  # request line, headers, chunk sizes and trailers of one request: all that is not its content
HEADERS_MAX = 100
CONTENT_BYTES_MAX = 2_097_152  # twice what handlers.oauth.forms reads and drops of a form
# How much content is still read and dropped after its request was answered: a client that goes on sending into a
# closed connection is reset and never reads the refusal. A stated length is believed up to the largest file.
DROPPED_BYTES_MAX = 268_435_456
DROPPED_BYTES_MAX_UNSTATED = 8 * CONTENT_BYTES_MAX
PIPELINE_MAX = 10  # requests that wait behind another one on the same connection; browsers send none

HEAD_SECONDS = 10
BODY_SECONDS = 30
SEND_SECONDS = 30  # in which a client has to take at least a part of its answer
LINGER_SECONDS = 5  # for a refused client to read the refusal and close
LATE_SECONDS = 2  # of answering, after which the connection gives way before a new one is refused
IDLE_SECONDS = 15
# A proxy that writes into a connection just closed answers its client with 502, so it must be the one to close first:
# nginx keeps idle connections for 60 seconds (if told to keep any), Caddy for 120.
PROXY_IDLE_SECONDS = 150

# How much the kernel buffers of an answer that its client does not read; by default it buffers megabytes.
SEND_BUFFER_BYTES = 131_072
PIECE_BYTES = 65_536  # of an answer that are written at once; the next piece follows when the client has taken them
# Of answers that wait for their clients, files shared by many not counted; beyond, the client that read nothing for
# longest is cut off.
UNREAD_BYTES_MAX = 67_108_864

# So much of an uploaded file has to arrive in BODY_SECONDS: a line of 70 kbit/s is enough. Content that is dropped
# has to arrive as fast.
FILE_BYTES_PER_PERIOD = 262_144
DROPPED_BYTES_PER_PERIOD = FILE_BYTES_PER_PERIOD * LINGER_SECONDS // BODY_SECONDS


class ContentBound(Struct):
    """How many bytes of content one request may send; a step that knows the sender may raise it."""

    bytes_max: int = CONTENT_BYTES_MAX

    @property
    def is_raised(self) -> bool:
        """Whether the bound was raised, because the request uploads a file."""
        return self.bytes_max > CONTENT_BYTES_MAX
