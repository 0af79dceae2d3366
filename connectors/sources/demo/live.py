"""A demo bank that wants to see its customer: a sign-in elsewhere or a TAN connects it, and its consent ends."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from urllib.parse import urlencode

from connectors.connecting import Done, FormField, Question, Redirect, Reply, Sentence, Step
from connectors.connector import Connection, Json, Ready, UserActionRequired, Waiting
from connectors.sources.demo.connector import DemoBank
from storage.importing.records import Batch

BANK = "Demobank"
PAGE_PATH = "/demo/bank"
CONSENT_LASTS = timedelta(days=90)
TAN = "123456"

WAY = Question(
    text=Sentence(
        en="How should the demo bank let you in? Real banks decide that themselves.",
        de="Wie soll die Demobank Sie einlassen? Echte Banken entscheiden das selbst.",
    ),
    fields=(
        FormField(
            name="way",
            label=Sentence(en="Way", de="Weg"),
            choices=(("redirect", "Redirect / Weiterleitung"), ("tan", "TAN")),
        ),
    ),
)
ASK_TAN = Question(
    text=Sentence(
        en=f"A real bank would send you a TAN now. The demo bank's is {TAN}.",
        de=f"Eine echte Bank würde Ihnen jetzt eine TAN senden. Die der Demobank ist {TAN}.",
    ),
    fields=(FormField(name="tan", label=Sentence(en="TAN", de="TAN"), is_secret=True),),
)
WRONG_TAN = Sentence(en="That is not the TAN.", de="Das ist nicht die TAN.")


class LiveDemoBank:
    """Implements `LiveSource` without asking any other machine; its bookings are those of the demo bank."""

    name = "demo-live"
    title = BANK
    about = Sentence(
        en="Invented accounts, connected as real ones are: with a redirect or a TAN.",
        de="Erfundene Konten, verbunden wie echte: mit einer Weiterleitung oder einer TAN.",
    )
    is_set_up = True
    is_local = True
    unattended_syncs_max = None

    def __init__(self) -> None:
        self._bank = DemoBank()

    def begin_connect(self, connection: Connection, reply: Reply, /, *, now: datetime) -> Step:  # noqa: ARG002 - the protocol names them
        """The way, then the bank's page or a TAN."""
        if reply.returned:
            if "code" not in reply.returned:
                raise UserActionRequired("The demo bank gave no access, because you declined.")
            return _done(now)
        match reply.given.get("way"):
            case "redirect":
                bank = reply.return_url.removesuffix("/connect/return") + PAGE_PATH
                return Redirect(url=f"{bank}?{urlencode({'state': reply.state})}")
            case "tan" if "tan" not in reply.given:
                return ASK_TAN
            case "tan" if reply.given["tan"] == TAN:
                return _done(now)
            case "tan":
                return Question(text=ASK_TAN.text, fields=ASK_TAN.fields, problem=WRONG_TAN)
        return WAY

    def is_same_login(self, known: Connection, done: Done) -> bool:  # noqa: ARG002 - the protocol names them
        """The demo bank knows one customer."""
        return True

    def disconnect(self, connection: Connection, *, now: datetime) -> None:
        """The demo bank keeps nothing."""

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        """As the demo bank."""
        return self._bank.start_refresh(connection, now=now)

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """As the demo bank."""
        return self._bank.poll_refresh(connection, handle, now=now)

    def fetch(self, connection: Connection, handle: Json, *, cursor: Json | None, today: date) -> Iterator[Batch]:
        """As the demo bank."""
        return self._bank.fetch(connection, handle, cursor=cursor, today=today)

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:
        """Nothing to tidy up."""


def _done(now: datetime) -> Done:
    return Done(
        bank_name=BANK,
        settings={"accounts": 2, "bank_name": BANK},
        secrets={"session": "demo"},
        consent_expires_at=now + CONSENT_LASTS,
    )
