"""The states of users' data, read from PostgreSQL by an event loop without a thread: single reads, pipelined on one
connection. Each is sent when it is requested, so no answer is older than its question."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import ConnStatus, ExecStatus

from storage.boundary import begin_thread

Connection = psycopg.Connection[tuple[Any, ...]]

QUESTION = b"PREPARE state (TEXT) AS SELECT state FROM users WHERE id = $1"
AWAITED = (ExecStatus.TUPLES_OK, ExecStatus.PIPELINE_SYNC)
NAME = b"state"  # of the prepared statement on its connection
SILENT_SECONDS = 2.0  # without an answer to a question: then the connection is given up
OPEN_AGAIN_SECONDS = 1.0  # after the last attempt


class AskedStates:
    """Reads states of users' data without a thread.

    Any fault leads to None: the caller then asks in a thread, and hears there what is wrong. `connect` opens a
    connection as the owner of the tables, in a thread; `on_silence` is called when a connection has been given up,
    because others of the same age may be dead, too.
    """

    def __init__(self, connect: Callable[[], Connection], *, on_silence: Callable[[], None] = lambda: None) -> None:
        self._connect = connect
        self._on_silence = on_silence
        self._lock = threading.Lock()
        self._is_opening = self._is_closed = False
        self._open_not_before = 0.0
        self._opened: Connection | None = None
        self._line: _Line | None = None
        self._given_up: object = None  # the line that is not used any more

    async def of(self, user_id: str) -> int | None:
        """The state of the user's data, 0 for nobody; None where it cannot be read, such as while a connection is being
        opened."""
        loop = asyncio.get_running_loop()
        if self._line is None or self._line.is_over or self._line.loop is not loop or self._line is self._given_up:
            self._line = self._next_line(loop)
        return await self._line.ask(user_id) if self._line is not None else None

    def give_up(self) -> None:
        """Stop using the present connection, because others have died, or it leads to a server that has been replaced.
        The next question has it closed and a new one opened."""
        self._given_up = self._line

    def close(self) -> None:
        """Close the connection, and answer None to whoever waits; call it in the thread of the event loop, or after the
        loop's end."""
        with self._lock:
            self._is_closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
        if self._line is not None:
            self._line.end()

    def _next_line(self, loop: asyncio.AbstractEventLoop) -> "_Line | None":
        if self._line is not None:
            self._line.end()
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None:
                with suppress(psycopg.Error):  # the connection has ended since it was opened
                    return _Line(opened, loop, self._on_silence)
            if not self._is_opening and not self._is_closed and loop.time() >= self._open_not_before:
                self._is_opening = True
                self._open_not_before = loop.time() + OPEN_AGAIN_SECONDS
                begin_thread("states", self._open)
        return None

    def _open(self) -> None:
        opened, is_ready = None, False
        try:
            with suppress(psycopg.Error):
                opened = self._connect()
                opened.execute(QUESTION)
                opened.pgconn.enter_pipeline_mode()
                opened.pgconn.nonblocking = 1
                is_ready = True
        finally:
            with self._lock:
                self._is_opening = False
                if is_ready and not self._is_closed:
                    self._opened, opened = opened, None
            if opened is not None:
                opened.close()


class _Line:
    """One connection used by one event loop, until it `is_over`. Answers come in the order of the questions."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop, on_silence: Callable[[], None]) -> None:
        self.loop = loop
        self._on_silence = on_silence
        self.is_over = False
        self._connection = connection
        self._server = connection.pgconn
        self._socket = connection.pgconn.socket
        self._waiting: deque[asyncio.Future[int | None]] = deque()
        self._answered = 0
        self._watch: asyncio.TimerHandle | None = None
        loop.add_reader(self._socket, self._read)

    def ask(self, user_id: str) -> "asyncio.Future[int | None]":
        answer: asyncio.Future[int | None] = self.loop.create_future()
        self._waiting.append(answer)
        if self._watch is None:
            self._watch = self.loop.call_later(SILENT_SECONDS, self._look, self._answered)
        self._send(user_id)
        return answer

    def end(self) -> None:
        """Close the connection and answer None to everybody who waits."""
        if self.is_over:
            return
        self.is_over = True
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
            if self._watch is not None:
                self._watch.cancel()
            while self._waiting:
                self._tell(None)
        self._connection.close()

    def _send(self, *user_ids: str) -> None:
        """Send these questions, as far as the socket takes them; the rest follows when it takes more."""
        try:
            for user_id in user_ids:
                self._server.send_query_prepared(NAME, [user_id.encode()])
                self._server.pipeline_sync()  # each question is a transaction of its own
            is_left = self._server.flush()
        except psycopg.Error:
            self.end()
            return
        if is_left:
            self.loop.add_writer(self._socket, self._send)
        else:
            self.loop.remove_writer(self._socket)

    def _read(self) -> None:
        try:
            self._server.consume_input()
            while self._waiting and not self._server.is_busy():
                result = self._server.get_result()
                if self._server.status != ConnStatus.OK or (result is not None and result.status not in AWAITED):
                    self.end()
                elif result is not None and result.status == ExecStatus.TUPLES_OK:
                    self._answered += 1
                    self._tell(int(result.get_value(0, 0) or 0) if result.ntuples else 0)
        except psycopg.Error:
            self.end()

    def _tell(self, said: int | None) -> None:
        answer = self._waiting.popleft()
        if not answer.done():  # the caller may have gone
            answer.set_result(said)

    def _look(self, answered_before: int) -> None:
        """Close the connection and report the silence if questions are waiting and none was answered since this timer
        was set; otherwise set it again while any wait. A dead connection may give no other sign."""
        self._watch = None
        if self._waiting and self._answered == answered_before:
            self.end()
            self._on_silence()
        elif self._waiting:
            self._watch = self.loop.call_later(SILENT_SECONDS, self._look, self._answered)
