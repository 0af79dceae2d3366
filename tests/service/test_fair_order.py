"""Users have turns: whatever comes in any order, held against the definition, in loops."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from handlers.work.sync.fair_order import COST_LEAST, COST_MOST, FairOrder, Work

pytestmark = pytest.mark.requirement("sync.turns")

MEGABYTE = 1024 * 1024
USERS = st.sampled_from("abc")
COSTS = st.sampled_from([0, COST_LEAST, COST_LEAST + 1, MEGABYTE, COST_MOST, COST_MOST + 1, 256 * MEGABYTE])


class Named(Work, kw_only=True):
    name: str = ""


def served(*waiting: tuple[str, str, int]) -> str:
    """The names of what waits as they get their turns; each is the name, its user and what it costs."""
    order: FairOrder[Named] = FairOrder()
    for name, user_id, cost in waiting:
        order.add(Named(name=name, user_id=user_id, cost=cost))
    found = ""
    while (work := order.take(lambda _: True)) is not None:
        found += work.name
    assert len(order) == 0
    return found


def test_who_waits_with_much_has_one_turn_and_then_the_others() -> None:
    assert served(*((name, "a", MEGABYTE) for name in "1234"), ("x", "b", MEGABYTE), ("y", "c", MEGABYTE)) == "1xy234"


def test_short_work_comes_before_long_work_of_others_and_of_the_same_user() -> None:
    assert served(("1", "a", MEGABYTE), ("2", "b", MEGABYTE - 1), ("3", "a", 0)) == "321"


def test_of_two_alike_the_first_one_comes_first() -> None:
    assert served(("1", "a", 0), ("2", "b", COST_LEAST)) == "12"
    assert served(("1", "a", COST_MOST), ("2", "b", COST_MOST + 1)) == "12"
    assert served(("1", "a", COST_LEAST + 1), ("2", "b", COST_LEAST)) == "21"
    assert served(("1", "a", COST_MOST), ("2", "b", COST_MOST - 1)) == "21"


def test_long_work_waits_for_as_much_of_another_user_as_it_costs_itself() -> None:
    short = [("s", "b", MEGABYTE)] * 9
    assert served(("L", "a", 3 * MEGABYTE), *short) == "ssLsssssss"
    assert served(("L", "a", 3 * MEGABYTE + 1), *short) == "sssLssssss"
    assert served(("L", "a", COST_MOST), *short) == "sssLssssss"
    assert served(("L", "a", 256 * MEGABYTE), *short) == "sssLssssss", "and COST_MOST at most"


def test_what_may_not_begin_yet_is_passed_by_and_what_left_gets_no_turn() -> None:
    order: FairOrder[Named] = FairOrder()
    first, second = (Named(name=name, user_id=name, cost=0) for name in "ab")
    order.add(first)
    order.add(second)
    assert order.take(lambda work: work.user_id != "a") is second
    assert order.take(lambda work: work.user_id != "a") is None
    order.leave(first)
    assert order.take(lambda _: True) is None


@dataclass
class Reference:
    """The definition, said slowly: all that ever had a turn is remembered, and the clock is read off it."""

    turns: list[tuple[str, int, int]] = field(default_factory=list)  # user, begin, end
    waiting: list[tuple[str, str, int, int]] = field(default_factory=list)  # name, user, cost, the clock at its coming

    @property
    def clock(self) -> int:
        return max((begin for _user, begin, _end in self.turns), default=0)

    def begin(self, user_id: str, came: int) -> int:
        return max([came, *(end for user, _begin, end in self.turns if user == user_id)])

    def next(self) -> str:
        best: tuple[int, int] | None = None
        for place, (_name, user_id, cost, came) in enumerate(self.waiting):
            ends = self.begin(user_id, came) + min(max(cost, COST_LEAST), COST_MOST)
            if best is None or ends < best[0]:
                best = ends, place
        assert best is not None
        name, user_id, _cost, came = self.waiting.pop(best[1])
        self.turns.append((user_id, self.begin(user_id, came), best[0]))
        return name


class FairTurns(RuleBasedStateMachine):
    """Work comes, leaves and gets its turn in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.order: FairOrder[Named] = FairOrder()
        self.reference = Reference()
        self.works: dict[str, Named] = {}
        self.may_be_passed_by: dict[str, Counter[str]] = {}  # how much more of each other user
        self.came = 0

    @rule(user_id=USERS, cost=COSTS)
    def comes(self, user_id: str, cost: int) -> None:
        self.came += 1
        work = Named(name=str(self.came), user_id=user_id, cost=cost)
        self.order.add(work)
        self.works[work.name] = work
        self.reference.waiting.append((work.name, user_id, cost, self.reference.clock))
        allowed = work.ends - self.reference.clock + COST_MOST  # what its own user had before counts, and one turn
        self.may_be_passed_by[work.name] = Counter(dict.fromkeys("abc", allowed))

    @precondition(lambda self: self.works)
    @rule(data=st.data())
    def leaves(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.works)))
        self.order.leave(self.works.pop(name))
        self.reference.waiting = [each for each in self.reference.waiting if each[0] != name]

    @precondition(lambda self: self.works)
    @rule()
    def begins(self) -> None:
        work = self.order.take(lambda _: True)
        assert work is not None
        assert work.name == self.reference.next()
        del self.works[work.name]
        for name, other in self.works.items():
            passed = self.may_be_passed_by[name]
            if other.user_id == work.user_id:
                passed.clear()
                passed.update(dict.fromkeys("abc", other.ends - self.reference.clock + COST_MOST))
            else:
                passed[work.user_id] -= min(max(work.cost, COST_LEAST), COST_MOST)
                assert passed[work.user_id] >= 0, "nobody starves"

    @invariant()
    def all_that_waits_is_counted(self) -> None:
        assert len(self.order) == len(self.works)


TestFairTurns = FairTurns.TestCase
