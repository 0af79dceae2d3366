"""Runs operations that read one user's data: each answer shows one state of the data, and is kept until the state
changes."""

from collections.abc import Callable, Hashable
from datetime import date
from typing import Any

from msgspec import Struct

from auth.scopes import READ_ANNOTATIONS
from handlers.operations.words.row_words import wants_words
from handlers.web import call
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import Need, NotLoaded, UserData
from handlers.work.services import Services

Light = Callable[[UserData, dict[str, Any]], bool]
"""Whether an answer can be computed from memory so quickly that the event loop may do it."""


First = Callable[[dict[str, Any]], bool]
"""Whether first answers are most likely enough for a request with these parameters."""


def needs_more(_arguments: dict[str, Any]) -> bool:
    """False: first answers are never enough."""
    return False


class CachedOperation(Struct, frozen=True, kw_only=True):
    """One operation bound to the services, with a cache of its answers, kept until the user's data change. Parts of the
    data that are not among its `needs`, or that first answers do not spare, are loaded when they are read. `at_once`
    answers on the event loop what is cached or quickly made from memory; everything else is called in a thread."""

    name: str
    services: Services
    function: Callable[..., Answer]
    needs: Need
    is_light: Light
    is_first: First = needs_more

    def __call__(self, request: Request, **arguments: Any) -> Answer:
        """Make the answer, with what is not in memory read from the store, and keep it for the same request; may take
        long."""
        key = self._key(request)  # before the work: an answer of yesterday must never be kept as one of today
        needs = Need.ACCOUNTS if self.is_first(arguments) else self.needs
        if wants_words(arguments):
            needs |= Need.WORDS
        only = arguments["id"] if Need.DETAILS in needs else None
        while True:
            try:
                with self.services.reader.open(request.principal.user_id, needs, only=only) as reading:
                    answer = _encode(self.function(self.services, request, reading, **arguments), request.language)
                    reading.keep_answer(key, answer)
                    return answer
            except NotLoaded as missing:
                needs |= missing.need

    async def at_once(self, request: Request, **arguments: Any) -> Answer | None:
        """The answer if it is in memory or quickly made from memory; else None. It is kept if the same is asked again.
        Meant for the event loop: it waits for nothing but the number of the data's present state, where another process
        may have changed them."""
        reader, user_id = self.services.reader, request.principal.user_id
        data = reader.cache.at_hand(user_id)
        if data is None:
            return None
        key = self._key(request)
        answer = data.answer(key)
        if answer is None and not self._is_light(data, arguments):
            return None
        if not await reader.is_present(user_id, data):
            return None
        if answer is None:
            try:
                answer = _encode(self.function(self.services, request, data, **arguments), request.language)
            except NotLoaded:
                return None
            if data.note_asked(key):
                data.keep_answer(key, answer)
            reader.cache.weigh(user_id, data)
        return answer

    def _is_light(self, data: UserData, arguments: dict[str, Any]) -> bool:
        return (
            (data.has(self.needs) or self.is_first(arguments))
            and not wants_words(arguments)
            and self.is_light(data, arguments)
        )

    def _key(self, request: Request) -> Hashable:
        today: date = self.services.clock.today()  # figures depend on the day
        caller = request.principal
        may_read_words = READ_ANNOTATIONS in caller.scopes
        return (
            *(self.name, request.path, request.query, today, request.language),
            *(caller.coverage, caller.is_whole, caller.figures_only, may_read_words),
        )


def _encode(answer: Answer, language: str) -> Answer:
    if isinstance(answer.body, bytes):
        return answer
    return call.in_language(answer, language)
