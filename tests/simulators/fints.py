"""A German bank that speaks FinTS 3.0 with PIN and TAN, written from the syntax of its messages.

Requests are read by the parser of python-fints; answers are written by hand, segment by segment, so that the client
library meets a bank that knows nothing of it. `python -m tests.simulators fints` serves it.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from fints.parser import FinTS3Parser

from tests.simulators.fints_bank.accounts import BANK_CODE, BIC, Account, Booking
from tests.simulators.fints_bank.documents import CAMT, camt, mt940
from tests.simulators.fints_bank.messages import Answer, binary, quoted, value
from tests.simulators.web_bank import Asked, Said, WebBank

PRODUCT = "9FA6681DEC0CF3046BFC2F8A6"  # whom the bank knows
DECOUPLED = "921:2:PUSH:Decoupled:1.0:Freigabe in der App:6:1:Freigabe:2048:J:1:N:0:0:N:N:00:{}:60:3:2:J:J"
TYPED = "920:2:SMS:mobileTAN:1.0:mobileTAN:6:1:TAN:2048:J:1:N:0:0:N:N:00:{}:0:0:0:N:N"
ONE_DEVICE, NAMED_DEVICES = "0:N:1", "2:N:2"  # whether the customer has to name the device


@dataclass
class Dialog:
    """What the bank knows of one dialog."""

    system_id: str
    is_approved: bool
    message: int = 0


@dataclass
class Bank:
    """The bank, its one customer, and what goes wrong. Tests change any of it between two syncs.

    `tan` is how an unknown client is approved: not at all, in the app (`approve`), or with `right_tan`.
    `has_both_ways`: the customer may choose between the two; `devices` are those that he has to choose from.
    `refused` are orders that are answered with `refusal`. `format` is what bookings come as.
    """

    accounts: list[Account]
    login: str = "eva-login"
    pin: str = "4711-pin"
    product: str = PRODUCT
    tan: Literal["none", "app", "typed"] = "app"
    right_tan: str = "123456"
    has_both_ways: bool = False
    has_balances: bool = True
    devices: Sequence[str] = ()
    shown_operations: str = "HKSAL:1+HKSPA:1+HKCAZ:1+HKKAZ:1"  # what accounts may be asked for; empty: left out
    format: Literal["camt", "mt940"] = "camt"
    today: date = date(2026, 11, 20)
    entries_per_page: int = 0  # 0: everything in one answer
    goes_round: bool = False  # every page names itself as the next one
    asks_for_every_order: bool = False
    free_days: int = 10_000  # of bookings that it shows without another approval; at most banks 90
    dialog_code: str | None = None  # with which every dialog begins
    refused: set[str] = field(default_factory=set)
    refusal: str = "9210"
    approvals: set[str] = field(default_factory=set)  # system ids
    orders: list[str] = field(default_factory=list)  # the segments that came, in order: what a test looks at
    wrong_pins: int = 0
    is_app_confirmed: bool = False
    _dialogs: dict[str, Dialog] = field(default_factory=dict)
    _waiting: dict[str, tuple[str, "_Order | None"]] = field(
        default_factory=dict
    )  # by order reference: the dialog that
    # it lets go on, and the order that waits for it
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 10**6)))

    def approve(self) -> None:
        """The customer taps "approve" in the bank's app."""
        self.is_app_confirmed = True

    def answer(self, request: bytes) -> bytes:
        """The message that answers a message."""
        segments = list(FinTS3Parser().parse_message(request).find_segments())
        found = {each.header.type: each for each in segments}
        head, sent = found["HNHBK"], [each for each in segments if each.header.type.startswith("HK")]
        self.orders += [each.header.type for each in sent]
        reply = Answer(dialog=head.dialog_id, number=head.message_number)
        if "HNSHA" in found and not self._opens(found["HNSHA"], found["HNSHK"], found["HNVSK"], reply):
            return reply.message()
        if head.dialog_id == "0":
            self._begin(found, reply)
        elif head.dialog_id not in self._dialogs:
            reply.refuse("9010", "Dialog unbekannt")
            return reply.message()
        dialog = self._dialogs[reply.dialog]
        for segment in sent:
            handler = getattr(self, f"_{segment.header.type.lower()}", None)
            if handler is not None:
                handler(_Order(segment, reply, dialog, found))
        return reply.message()

    def _opens(self, signature: Any, head: Any, envelope: Any, reply: Answer) -> bool:
        given = signature.user_defined_signature.pin
        if envelope.key_name.user_id == self.login and str(getattr(given, "value", given)) == self.pin:
            self.wrong_pins = 0 if self.wrong_pins < 3 else self.wrong_pins
            if self.wrong_pins < 3:
                return True
        self.wrong_pins += 1
        reply.refuse("9050", "Die Nachricht enthält Fehler.")
        locked = self.wrong_pins > 3
        reply.segment(head, "3938" if locked else "9942", "Zugang gesperrt." if locked else "PIN ungültig.")
        return False

    def _begin(self, found: dict[str, Any], reply: Answer) -> None:
        hello, prepare = found["HKIDN"], found["HKVVB"]
        reply.dialog = f"D{next(self._numbers)}"
        known = str(hello.system_id) in self.approvals
        self._dialogs[reply.dialog] = Dialog(str(hello.system_id), is_approved=known or self.tan == "none")
        if prepare.product_name != self.product:
            reply.refuse("9078", "Produkt nicht registriert.")
        if self.dialog_code is not None:
            reply.refuse(self.dialog_code, "Dialog abgelehnt.")
        ways = [TYPED, DECOUPLED] if self.has_both_ways else [TYPED if self.tan == "typed" else DECOUPLED]
        asks = "J" if self.format == "camt" else "N"
        reply.segment(prepare, "3050", "BPD nicht mehr aktuell.")
        reply.segment(prepare, "3920", "Zugelassene Verfahren", *(way[:3] for way in ways))
        reply.add("HIBPA", 3, prepare, f"7+280:{BANK_CODE}+Testbank AG+3+1:2+300+9999")
        if self.has_balances:
            reply.add("HISALS", 7, prepare, "1+1+0")
        reply.add("HISPAS", 1, prepare, "1+1+0+J:N:N")
        if self.format == "camt":
            reply.add("HICAZS", 1, prepare, f"1+1+0+450:N:N:{quoted(CAMT)}")
        else:
            reply.add("HIKAZS", 7, prepare, "1+1+0+450:N:N")
        reply.add("HIPINS", 1, prepare, f"1+1+0+4:20:6:Kennung:Kunde:HKSPA:N:HKSAL:N:HKCAZ:{asks}:HKKAZ:{asks}")
        described = ":".join(way.format(NAMED_DEVICES if self.devices else ONE_DEVICE) for way in ways)
        reply.add("HITANS", 7, prepare, f"1+1+0+N:N:0:{described}")
        reply.add("HITABS", 4, prepare, "1+1+0")
        reply.add("HIUPA", 4, prepare, f"{self.login}+3+0")
        for each in self.accounts:
            where = f"{each.number}::280:{BANK_CODE}"
            owner = f"Eva Muster++{quoted(each.product)}"
            about = f"{where}+{each.iban}+{self.login}+{each.kind}+{each.currency}+{owner}++{self.shown_operations}"
            reply.add("HIUPD", 6, prepare, about)

    def _hksyn(self, order: "_Order") -> None:
        order.reply.add("HISYN", 4, order.segment, f"SYS{next(self._numbers)}")

    def _hkend(self, order: "_Order") -> None:
        del self._dialogs[order.reply.dialog]
        order.reply.segment(order.segment, "0100", "Dialog beendet.")

    def _hktan(self, order: "_Order") -> None:
        segment, reply = order.segment, order.reply
        match segment.tan_process:
            case "4" if segment.segment_type == "HKIDN":
                if order.dialog.is_approved:
                    reply.segment(segment, "3076", "Keine starke Authentifizierung erforderlich.")
                    reply.add("HITAN", 7, segment, "4++noref+nochallenge")
                else:
                    self._challenge(segment, reply)
            case "S":
                reply.add("HITAN", 7, segment, f"S++{segment.task_reference}")
                if self.is_app_confirmed:
                    self.is_app_confirmed = False
                    self._let_go_on(order)
                else:
                    reply.segment(segment, "3956", "Freigabe steht noch aus.")
            case "2" if order.found["HNSHA"].user_defined_signature.tan == self.right_tan:
                self._let_go_on(order)
            case "2":
                reply.refuse("9050", "Die Nachricht enthält Fehler.")
                reply.segment(segment, "9941", "TAN ungültig.")

    def _challenge(self, segment: Any, reply: Answer, order: "_Order | None" = None) -> None:
        reference = f"R{next(self._numbers)}"
        self._waiting[reference] = reply.dialog, order
        code = "3955" if self.tan == "app" else "0030"
        text = "Bitte in der App freigeben." if self.tan == "app" else "Bitte die TAN aus der SMS eingeben."
        reply.segment(segment, code, "Auftrag empfangen.")
        reply.add("HITAN", 7, segment, f"4++{reference}+{text}")

    def _let_go_on(self, order: "_Order") -> None:
        dialog, waits = self._waiting.pop(str(order.segment.task_reference))
        assert dialog == order.reply.dialog
        order.dialog.is_approved = True
        self.approvals.add(order.dialog.system_id)
        order.reply.segment(order.segment, "0020", "Auftrag ausgeführt.")
        if waits is not None:
            self._hkcaz(replace(waits, reply=order.reply, found={}))

    def _hktab(self, order: "_Order") -> None:
        media = "".join(f"+M:1{':' * 11}{quoted(each)}" for each in self.devices)
        order.reply.add("HITAB", 4, order.segment, f"0{media}")

    def _hkspa(self, order: "_Order") -> None:
        if self._may(order):
            accounts = (f"J:{each.iban}:{BIC}:{each.number}::280:{BANK_CODE}" for each in self.accounts)
            order.reply.add("HISPA", 1, order.segment, "+".join(accounts))

    def _hksal(self, order: "_Order") -> None:
        if self._may(order):
            account = self._account(order.segment.account.iban)
            mark, amount = "D" if account.balance < 0 else "C", value(abs(account.balance))
            balance = f"{mark}:{amount}:{account.currency}:{self.today:%Y%m%d}"
            where = f"{account.iban}:{BIC}:{account.number}::280:{BANK_CODE}"
            available = f"{value(account.balance + 500)}:{account.currency}"
            said = f"{where}+{quoted(account.product)}+{account.currency}+{balance}+++{available}"
            order.reply.add("HISAL", 7, order.segment, said)

    def _hkcaz(self, order: "_Order") -> None:
        if not self._may(order) or not self._is_free(order):
            return
        account = self._account(order.segment.account.iban)
        rows = self._page(account, order)
        if rows:
            booked = camt(account, [each for each in rows if not each.is_pending], self.today)
            pending = [each for each in rows if each.is_pending]
            said = f"{account.iban}:{BIC}+{quoted(CAMT)}+{binary(booked)}"
            said += f"+{binary(camt(account, pending, self.today))}" if pending else ""
            order.reply.add("HICAZ", 1, order.segment, said)
        else:
            order.reply.segment(order.segment, "3010", "Keine Umsätze vorhanden.")

    def _hkkaz(self, order: "_Order") -> None:
        if not self._may(order):
            return
        account = self._account(order.segment.account.iban)
        booked = [each for each in self._page(account, order) if not each.is_pending]
        if booked:
            order.reply.add("HIKAZ", 7, order.segment, binary(mt940(account, booked)))
        else:
            order.reply.segment(order.segment, "3010", "Keine Umsätze vorhanden.")

    def _page(self, account: Account, order: "_Order") -> list[Booking]:
        since, until = order.segment.date_start or date.min, order.segment.date_end
        rows = [each for each in account.bookings if since <= each.day <= until]
        first = int(order.segment.touchdown_point or 0)
        last = first + self.entries_per_page if self.entries_per_page else len(rows)
        if last < len(rows):
            order.reply.segment(
                order.segment, "3040", "Weitere Umsätze.", str(first or last) if self.goes_round else str(last)
            )
        return rows[first:last]

    def _may(self, order: "_Order") -> bool:
        if order.segment.header.type in self.refused:
            order.reply.refuse("9050", "Teilweise fehlerhaft.")
            order.reply.segment(order.segment, self.refusal, "Auftrag abgelehnt.")
        elif not order.dialog.is_approved:
            order.reply.segment(order.segment, "9075", "Starke Authentifizierung erforderlich.")
        else:
            return True
        return False

    def _is_free(self, order: "_Order") -> bool:
        """Whether the bookings come without another approval."""
        is_old = (order.segment.date_start or date.min) < self.today - timedelta(days=self.free_days)
        is_old = is_old and not order.segment.touchdown_point  # the order that goes on was approved
        if "HKTAN" not in order.found or not (is_old or self.asks_for_every_order):
            return True
        self._challenge(order.found["HKTAN"], order.reply, order)
        return False

    def _account(self, iban: str) -> Account:
        return next(each for each in self.accounts if each.iban == iban)


@dataclass
class _Order:
    """One segment of a request, what it is answered in, and the other segments that came with it."""

    segment: Any
    reply: Answer
    dialog: Dialog
    found: dict[str, Any]


class FinTsBank(WebBank):
    """The bank as a server; `GET /approve` is the tap in the app, for who runs it by hand."""

    def __init__(self, bank: Bank, port: int = 0) -> None:
        super().__init__(port)
        self.bank = bank

    @property
    def url(self) -> str:
        return f"{self.address}/fints"

    def answer(self, asked: Asked) -> Said:
        if asked.path == "/approve":
            self.bank.approve()
            return Said(text="approved", content_type="text/plain")
        reply = self.bank.answer(base64.b64decode(asked.body))
        return Said(text=base64.encodebytes(reply).decode(), content_type="text/plain")  # in lines, as some banks do


def example(today: date) -> Bank:
    """A bank with two accounts and two weeks of bookings."""
    bookings = [
        Booking(day=today - timedelta(days=12), amount=Decimal("2500.00"), name="Muster GmbH", purpose="Gehalt"),
        Booking(day=today - timedelta(days=9), amount=Decimal("-780.00"), name="Hausverwaltung Süd", purpose="Miete"),
        Booking(day=today - timedelta(days=3), amount=Decimal("-4.20"), name="Kiosk am Markt", purpose="Kaffee"),
        Booking(day=today - timedelta(days=3), amount=Decimal("-4.20"), name="Kiosk am Markt", purpose="Kaffee"),
        Booking(day=today, amount=Decimal("-31.99"), name="Buchladen", purpose="vorgemerkt", is_pending=True),
    ]
    current = Account(number="1234567890", iban="DE23100000001234567890", bookings=bookings)
    savings = Account(number="77", iban="DE35100000000000000077", product="Tagesgeld", kind=10, opening=Decimal("5000"))
    return Bank([current, savings], today=today)


def serve(port: int) -> None:
    """The example bank, until Ctrl-C."""
    bank = FinTsBank(example(datetime.now(UTC).date()), port)
    print(
        f"BANKDATA_FINTS_PRODUCT={bank.bank.product}\n"
        f"bankdata connect fints --user NAME --url {bank.url} --bank-code {BANK_CODE} --login {bank.bank.login}\n"
        f"PIN {bank.bank.pin}; approve in the app: {bank.address}/approve",
        flush=True,
    )
    bank.serve_forever()
