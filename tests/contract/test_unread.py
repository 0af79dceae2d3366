"""Answers that wait for their readers hold so much memory together and no more."""

from dataclasses import dataclass

import pytest

from handlers.web.sockets.peers import Unread


@dataclass(eq=False)
class Client:
    is_gone: bool = False

    def give_way(self) -> None:
        self.is_gone = True


@pytest.mark.requirement("http.unread")
def test_the_reader_that_has_taken_nothing_for_longest_is_let_go() -> None:
    unread = Unread(most=100)
    first, second, third = Client(), Client(), Client()
    unread.waits(first, 50)
    unread.waits(second, 50)
    assert not first.is_gone
    unread.goes_on(first)  # it reads, and waits again behind the other
    unread.waits(first, 50)
    unread.waits(third, 1)
    assert [client.is_gone for client in (first, second, third)] == [False, True, False]
    unread.goes_on(second)
    unread.waits(second, 49)
    assert not first.is_gone


@pytest.mark.requirement("http.unread")
def test_a_single_answer_may_be_larger_than_all_of_them() -> None:
    unread = Unread(most=100)
    first, large = Client(), Client()
    unread.waits(first, 0)
    unread.waits(large, 1_000)
    assert (first.is_gone, large.is_gone) == (True, False)
    unread.goes_on(large)
    unread.waits(first, 100)
    assert not large.is_gone
