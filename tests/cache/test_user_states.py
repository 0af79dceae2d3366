"""The state of a user's data in memory: never older than what anybody can have seen committed."""

import pytest

from storage.user_states import States


class Counted:
    """A store whose state can be set and that counts how often it is asked."""

    def __init__(self, state: int) -> None:
        self.state = state
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.state


@pytest.mark.requirement("cache.state")
def test_a_state_is_read_once_and_then_remembered() -> None:
    states, store = States(), Counted(7)
    assert states.in_memory("eva") is None
    assert [states.present("eva", store), states.present("eva", store)] == [7, 7]
    assert (states.in_memory("eva"), store.asked) == (7, 1)


@pytest.mark.requirement("cache.state")
def test_while_a_change_is_under_way_every_reader_asks_the_store() -> None:
    states, store = States(), Counted(7)
    states.present("eva", store)
    states.begin("eva")
    assert states.in_memory("eva") is None
    store.state = 8  # committed, but the transaction has not told us yet
    assert states.present("eva", store) == 8
    assert states.in_memory("eva") is None
    states.end(["eva"])
    assert states.present("eva", store) == 8
    assert states.in_memory("eva") == 8


@pytest.mark.requirement("cache.state")
def test_a_state_that_was_read_across_the_end_of_a_change_is_not_remembered() -> None:
    states = States()
    states.begin("eva")

    def slow() -> int:
        states.end(["eva"])  # the commit comes between the reader's query and its answer
        return 7

    assert states.present("eva", slow) == 7
    assert states.in_memory("eva") is None


@pytest.mark.requirement("cache.state")
def test_two_changes_at_once_end_one_after_the_other() -> None:
    states, store = States(), Counted(7)
    states.begin("eva")
    states.begin("eva")
    states.end(["eva"])
    states.present("eva", store)
    assert states.in_memory("eva") is None
    states.end(["eva"])
    states.present("eva", store)
    assert states.in_memory("eva") == 7


@pytest.mark.requirement("cache.state")
def test_the_change_of_one_user_leaves_the_others_in_memory() -> None:
    states = States()
    states.present("eva", lambda: 1)
    states.present("max", lambda: 5)
    states.begin("eva")
    assert (states.in_memory("eva"), states.in_memory("max")) == (None, 5)
