"""Runs operations that read one user's data: each answer shows one state of the data, and is kept until the state
changes."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import date
from typing import Any

from auth.scopes import READ_ANNOTATIONS
from handlers.cache.reader import Needs
from handlers.cache.user_data import UserData
from handlers.http import call
from handlers.http.request import Answer, Request
from handlers.operations.words.said import wants_words
from handlers.services import Services

Light = Callable[[UserData, dict[str, Any]], bool]
"""Whether an answer can be computed from memory so quickly that the event loop may do it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedOperation:
    """One operation bound to the services; called in a thread, unless `at_once` has the answer already."""

    name: str
    services: Services
    function: Callable[..., Answer]
    needs: Needs
    is_light: Light

    def __call__(self, request: Request, **arguments: Any) -> Answer:
        """The answer, computed from data in memory or from the store; may take long."""
        key = self._key(request)  # before the work: an answer of yesterday must never be kept as one of today
        with_words = wants_words(arguments)
        with self.services.reader.open(request.principal.user_id, self.needs, with_words=with_words) as reading:
            answer = _encode(self.function(self.services, request, reading, **arguments))
            if isinstance(reading, UserData):
                reading.keep_answer(key, answer)
            return answer

    async def at_once(self, request: Request, **arguments: Any) -> Answer | None:
        """The answer if it is in memory or quickly computed from memory; else None. Meant for the event loop: it waits
        for nothing but the number of the data's present state, where another process may have changed them."""
        reader, user_id = self.services.reader, request.principal.user_id
        data = reader.at_hand(user_id)
        if data is None:
            return None
        key = self._key(request)
        answer = data.answer(key)
        if answer is None and (wants_words(arguments) or not self.is_light(data, arguments)):
            return None
        if not await reader.is_present(user_id, data):
            return None
        if answer is None:
            answer = _encode(self.function(self.services, request, data, **arguments))
            if data.is_asked_again(key):
                data.keep_answer(key, answer)
            reader.weigh(user_id, data)
        return answer

    def _key(self, request: Request) -> Hashable:
        today: date = self.services.clock.today()  # figures depend on the day
        caller = request.principal
        may_read_words = READ_ANNOTATIONS in caller.scopes
        return (
            *(self.name, request.path, request.query, today),
            *(caller.coverage, caller.figures_only, may_read_words),
        )


def _encode(answer: Answer) -> Answer:
    if isinstance(answer.body, bytes):
        return answer
    return Answer(body=call.encoded(answer.body), status=answer.status, headers=answer.headers)
