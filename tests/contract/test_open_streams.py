"""How many streams of events are open at once, and which of them gives way to the next one."""

from dataclasses import dataclass

import pytest

from auth.principal import Principal
from handlers.web.errors import TooManyRequests
from handlers.web.open_streams import OF_GRANT_MAX, OF_PERSON_MAX, OpenStreams

pytestmark = pytest.mark.requirement("events.stream")


@dataclass(eq=False)
class Stream:
    is_leaving: bool = False

    def give_way(self) -> None:
        self.is_leaving = True


def asking(person: str, grant: str) -> Principal:
    return Principal(user_id=person, client_id="app", scopes=frozenset(), has_subscription=True, grant_id=grant)


def opened(streams: OpenStreams, person: str, count: int) -> list[Stream]:
    """So many more streams of a person, each of a grant of its own."""
    made = [Stream() for _ in range(count)]
    for number, each in enumerate(made):
        streams.add(each, asking(person, f"{person} {number}"))
    return made


def test_a_grant_is_refused_one_more_than_it_may_have_until_one_is_closed() -> None:
    streams, made = OpenStreams(100), [Stream() for _ in range(OF_GRANT_MAX)]
    for each in made:
        streams.check(asking("ada", "a"))
        streams.add(each, asking("ada", "a"))
    with pytest.raises(TooManyRequests):
        streams.check(asking("ada", "a"))
    streams.check(asking("ada", "another"))
    streams.remove(made[0])
    streams.remove(made[0])
    streams.check(asking("ada", "a"))


def test_of_one_person_the_oldest_gives_way_to_one_too_many() -> None:
    streams = OpenStreams(1000)
    others, own = opened(streams, "eva", 1), opened(streams, "ada", OF_PERSON_MAX)
    assert [each for each in own if each.is_leaving] == []
    opened(streams, "ada", 1)
    assert [each for each in (*others, *own) if each.is_leaving] == own[:1]
    assert len(streams) == 1 + OF_PERSON_MAX


def test_of_all_the_oldest_of_whoever_has_most_gives_way_to_one_too_many() -> None:
    streams = OpenStreams(6)
    one, three, two = opened(streams, "eva", 1), opened(streams, "ada", 3), opened(streams, "bo", 2)
    opened(streams, "cy", 1)
    assert [each.is_leaving for each in (*one, *three, *two)] == [False, True, False, False, False, False]
