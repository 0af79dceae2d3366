"""What letters to people say, in their language: without names and amounts unless a target wants whole sentences."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from analytics.messages import Message
from connectors.ways import Letter
from connectors.ways.plain import plain
from handlers.languages import catalogue
from handlers.notice_sentences import text_of, title_of
from storage.notices.stored import Notice
from storage.notices.ways.deliveries import NoticeDelivery

URGENT = ("overdraft.ahead", "access.new")
MATTERS_FOR = timedelta(days=3)
LEAST = timedelta(minutes=10)
DISCREET: Mapping[str, str] = {
    "overdraft": "An account needs a look",
    "balance": "An account needs a look",
    "ledger": "An account needs a look",
    "consent": "A bank needs a look",
    "sync": "A bank needs a look",
    "access": "Something about access has changed",
    "server": "The server needs a look",
}
"""By the first word of a kind; of all others it is a payment."""
A_PAYMENT = "A payment needs a look"


class Said(NamedTuple):
    """Title and lines of a letter, and the last day on which it matters, if that is known."""

    title: Message
    text: tuple[Message, ...] = ()
    until: date | None = None


def of_notice(notice: Notice, *, is_whole: bool) -> Said:
    """What a letter says of a notice."""
    if not is_whole:
        return Said(Message(DISCREET.get(notice.kind.partition(".")[0], A_PAYMENT)), until=notice.ends_on)
    text = text_of(notice.content["message"], notice.content["arguments"])
    return Said(title_of(notice.kind), (text,), notice.ends_on)


def of_end(notice: Notice, *, is_whole: bool) -> Said:
    """What a letter says of a notice that is over."""
    if not is_whole:
        return Said(Message("What needed a look is over"))
    before = of_notice(notice, is_whole=True)
    text = Message("This was told before and holds no more: {text}", text=before.text[0])
    return Said(Message("Over: {title}", title=before.title), (text,))


def of_more(count: int) -> Said:
    """What a letter says instead of the fourth of a day."""
    title = Message("{n} more notices today", n=count) if count != 1 else Message("One more notice today")
    return Said(title, (Message("No more are sent today. All of them are on the page."),))


def of_digest(digest: str, lines: Sequence[Message]) -> Said:
    """The digest of a `weekly` or `monthly` period, without its lines for who wants no whole sentences."""
    return Said(Message("Your week in figures" if digest == "weekly" else "Your month in figures"), tuple(lines))


def of_code(code: str) -> Said:
    """What brings a code to a new target."""
    return Said(
        Message("Your code is {code}", code=code),
        (Message("Enter it on the page on which you added this address. If you did not, nothing more will come."),),
    )


def of_test() -> Said:
    """What a test says."""
    return Said(Message("A test"), (Message("Notices arrive here."),))


def of_removal() -> Said:
    """The last sentence to a target that was removed."""
    return Said(
        Message("No more notices come here"),
        (Message("This address was removed. If that was not you, change your password and look at who has access."),),
    )


def letter(delivery: NoticeDelivery, said: Said, *, language: str, link: str, leave: str, at: datetime) -> Letter:
    """The letter in this language; `at` is the real time."""
    words = catalogue(language)
    ends = datetime.combine(said.until or at.date() + MATTERS_FOR, time.max)
    text = [plain(words.said(each) or str.__str__(each)) for each in (said.title, *said.text)]
    return Letter(
        id=delivery.id,
        tag=delivery.notice_id or delivery.what,
        title=text[0],
        text="\n".join(text[1:]),
        link=link,
        is_urgent=delivery.kind in URGENT and delivery.what == "notice",
        is_silent=delivery.what == "over",
        seconds=int(min(MATTERS_FOR, max(LEAST, ends - at)).total_seconds()),
        leave=leave,
        at=at,
    )
