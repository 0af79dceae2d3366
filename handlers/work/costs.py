"""What users, bookings and requests cost over each kind of store, as `tests/benchmarks/capacity.py` measures it."""

from msgspec import Struct

BUSY = 0.5  # of a core: above, answers wait


class Costs(Struct, frozen=True, kw_only=True):
    """Costs over one kind of store: bytes on disk per user, bank connection and booking; milliseconds of processor time
    per request and per planned sync without news, each as a pair (in the service, in the database)."""

    user_bytes: int
    connection_bytes: int
    booking_bytes: int
    request_ms: tuple[float, float]
    sync_ms: tuple[float, float]

    def disk(self, users: int, bookings: int, connections: int) -> int:
        """The bytes on disk that so many users, bookings and bank connections take."""
        return users * self.user_bytes + bookings * self.booking_bytes + connections * self.connection_bytes

    def cores(self, requests: float, syncs: float) -> tuple[float, float]:
        """The processor cores that the service and the database need for so many requests and syncs a second, each busy
        half the time."""
        service, database = (
            (requests * request + syncs * sync) / 1000 / BUSY
            for request, sync in zip(self.request_ms, self.sync_ms, strict=True)
        )
        return service, database


EMBEDDED = Costs(user_bytes=220_000, connection_bytes=13_000, booking_bytes=500, request_ms=(0.13, 0), sync_ms=(85, 0))
POSTGRESQL = Costs(
    user_bytes=910_000, connection_bytes=7_000, booking_bytes=1_900, request_ms=(0.18, 0.03), sync_ms=(36, 32)
)
