"""A demo bank that requires its customer: a sign-in elsewhere or a TAN connects it, and its consent ends."""

from datetime import datetime, timedelta
from urllib.parse import urlencode

from msgspec.structs import replace

from analytics.messages import Message
from connectors.connecting import Done, FormField, LiveSource, Question, Redirect, Reply, Step
from connectors.connector import Connection, UserActionRequired
from connectors.sources.demo.connector import DemoBank

BANK = "Demobank"
PAGE_PATH = "/demo/bank"
CONSENT_LASTS = timedelta(days=90)
TAN = "123456"

WAY = Question(
    text=Message("How should the demo bank let you in? Real banks decide that themselves."),
    fields=(
        FormField(
            name="way",
            label=Message("Way"),
            choices=(("redirect", "Redirect / Weiterleitung"), ("tan", "TAN")),
        ),
    ),
)
ASK_TAN = Question(
    text=Message("A real bank would send you a TAN now. The demo bank's is {tan}.", tan=TAN),
    fields=(FormField(name="tan", label=Message("TAN"), is_secret=True),),
)
WRONG_TAN = Message("That is not the TAN.")


class LiveDemoBank(DemoBank, LiveSource):
    """The demo bank as a live source, which asks no other machine."""

    name = "demo-live"
    title = BANK
    about = Message("Invented accounts, connected as real ones are: with a redirect or a TAN.")
    is_set_up = True

    def next_step(self, connection: Connection, reply: Reply, /, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        """The next step: the choice of a way, then the bank's page or a TAN."""
        if reply.returned:
            if "code" not in reply.returned:
                raise UserActionRequired("The demo bank gave no access, because you declined.")
            return _finish(now)
        match reply.given.get("way"):
            case "redirect":
                bank = reply.return_url.removesuffix("/connect/return") + PAGE_PATH
                return Redirect(url=f"{bank}?{urlencode({'state': reply.state})}")
            case "tan" if "tan" not in reply.given:
                return ASK_TAN
            case "tan" if reply.given["tan"] == TAN:
                return _finish(now)
            case "tan":
                return replace(ASK_TAN, problem=WRONG_TAN)
        return WAY

    def is_same_login(self, known: Connection, done: Done) -> bool:  # noqa: ARG002 - the protocol names them
        """Always True, because the demo bank has only one customer."""
        return True

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """Do nothing, because the demo bank keeps nothing."""


def _finish(now: datetime) -> Done:
    return Done(
        bank_name=BANK,
        settings={"accounts": 2, "bank_name": BANK},
        secrets={"session": "demo"},
        consent_expires_at=now + CONSENT_LASTS,
    )
