"""Everything the pages say, in English and German."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Words:
    """One language; templates read `t.name` or `t.text["name"]`."""

    language: str
    text: Mapping[str, str]

    def __call__(self, name: str, **values: object) -> str:
        """A text with its places filled."""
        return self.text[name].format(**values)

    def day(self, moment: datetime) -> str:
        """The day of a moment, which comes in the zone of the people here."""
        month = self.text["months"].split()[moment.month - 1]
        return self("day_written", day=moment.day, month=month, year=moment.year)

    def minute(self, moment: datetime) -> str:
        """The day and the time of day."""
        return f"{self.day(moment)}, {moment:%H:%M}"


def words_for(accept_language: str) -> Words:
    """The language a browser prefers (RFC 9110 section 12.5.4); English when it asks for neither."""
    wanted: list[tuple[float, str]] = []
    for part in accept_language[:500].split(","):
        tag, _, parameter = part.partition(";")
        name, _, number = parameter.strip().partition("=")
        try:
            quality = float(number) if name.strip() == "q" else 1.0
        except ValueError:
            quality = 0.0
        wanted.append((quality, tag.strip().lower().partition("-")[0]))
    spoken = [(quality, tag) for quality, tag in wanted if tag in LANGUAGES and quality > 0]
    best = max(spoken, key=lambda pair: pair[0], default=(1.0, "en"))
    return LANGUAGES[best[1]]


ENGLISH = Words(
    "en",
    {
        "service": "Banking Data Service",
        "tagline": "Your bank data, on your terms",
        "error_prefix": "Error: ",
        "sign_in": "Sign in",
        "sign_in_for": "to go on to “{app}”",
        "sign_in_account": "to see and manage your connected apps",
        "sign_in_next": "You decide on the next page what “{app}” may see. Your password stays here.",
        "user_name": "User name",
        "password": "Password",
        "wrong_login": "User name or password is wrong. Check both and try again.",
        "wait_login": "Too many failed attempts. Please wait {seconds} seconds and try again.",
        "check_address": "Check that the address bar shows the address of your own service before you type.",
        "consent_title": "Allow “{app}” to see your bank data?",
        "consent_asks": "asks for access to your accounts.",
        "unverified": "Self-registered, not verified",
        "unverified_explained": "Anyone can choose this name. Continue only if you started this yourself just now.",
        "unverified_program": "Anyone can choose this name, and a program on this computer gets access. Continue only "
        "if you started this yourself just now.",
        "operator_added": "Added by your operator",
        "part_of_the_service": "Part of this service",
        "may": "If you allow it, this app can",
        "may_not": "It cannot move money or change anything, and never sees your password.",
        "read:accounts": "see your accounts and their balances",
        "read:accounts_more": "Names, IBANs, balances, bookings of the last 30 days; start a refresh",
        "read:transactions": "read and search your transactions",
        "read:transactions_more": "Amounts, counterparts, purposes, categories",
        "read:cashflow": "see your cash flow and recurring payments",
        "read:cashflow_more": "Monthly income and expenses, detected subscriptions, the bookings behind them",
        "back_to": "Afterwards you go to",
        "back_to_loopback": "a program on this computer ({destination})",
        "back_to_app": "an app on this device ({destination})",
        "loopback_warning": "A program on this computer gets access: allow it only if you started it.",
        "signed_in_as": "Signed in as",
        "lasts_text": "Access lasts until you revoke it, at most {days} days.",
        "revoke_where": "You can revoke access at any time:",
        "allow": "Allow",
        "deny": "Deny",
        "not_you": "Not you? Sign out",
        "account": "Your account",
        "connected": "Connected apps",
        "connected_none": "No app is connected. When you allow one, it appears here.",
        "connected_explained": "These apps can read your bank data. Revoke ends an app's access at once.",
        "can": "Can",
        "since": "Connected",
        "last_used": "Last used around",
        "twin": "(id ends in {end})",
        "months": "January February March April May June July August September October November December",
        "day_written": "{day} {month} {year}",
        "no_data": "No bank data yet",
        "no_data_text": "Apps that you allow see nothing until your accounts are here. Whoever runs this service can "
        "bring in a statement that you downloaded from your bank (camt, MT940, OFX or CSV):",
        "no_data_file": "FILE",
        "no_data_more": "The command bankdata connect folder brings in a folder that every sync looks into.",
        "revoke": "Revoke",
        "revoke_app": "Revoke access of “{app}”",
        "revoked": "Access revoked. The app can read nothing from now on.",
        "change_password": "Change password",
        "current_password": "Current password",
        "new_password": "New password",
        "new_password_hint": "At least 12 characters. A few words you can remember are better than symbols.",
        "repeated_password": "New password again",
        "save_password": "Change password",
        "password_effect": "All other browsers are signed out. Connected apps stay connected.",
        "password_changed": "Password changed. All other browsers are signed out.",
        "password_wrong": "The current password is wrong.",
        "password_different": "The two new passwords differ.",
        "password_short": "The new password is too short: at least 12 characters.",
        "password_long": "The new password is too long or has characters that cannot be used.",
        "password_common": "The new password is too common: it is among the first that are guessed.",
        "password_name": "The new password must not be your user name.",
        "password_wait": "Too many failed attempts. Please wait {seconds} seconds and try again.",
        "sign_out": "Sign out",
        "what_now": "What you can do",
        "for_developers": "For the app's developer",
        "back_to_the_app": "Back to the app",
        "to_account": "To your account",
        "bad_client": "This app is not known here",
        "bad_client_text": "The link you followed names no app that is registered with this service, so you were not "
        "sent anywhere.",
        "bad_client_now": "Go back to the app and connect it again. If it keeps failing, tell its developer.",
        "bad_redirect_uri": "This link leads somewhere the app never named",
        "bad_redirect_uri_text": "The address to return to does not match what the app registered. To protect you, "
        "you were not sent there.",
        "bad_redirect_uri_now": "Go back to the app and try again. If somebody sent you this link, do not use it.",
        "bad_request": "The app asked in a way that cannot work",
        "bad_request_text": "The request has a mistake. Nothing was shared.",
        "bad_request_now": "Return to the app; it will be told what was wrong.",
        "bad_form": "This request cannot be read",
        "bad_form_text": "Something in it is broken or was sent twice.",
        "bad_form_now": "Go back and try again.",
        "too_large": "This request is too large",
        "too_large_text": "The address or the form has more characters than this service reads.",
        "too_large_now": "Go back to the app and try again.",
        "foreign_form": "This form did not come from here",
        "foreign_form_text": "For your safety, only this service's own pages can send this form. Nothing was changed.",
        "foreign_form_now": "Open the page again and repeat what you wanted to do.",
        "no_session": "Your browser is not signed in here any more",
        "no_session_text": "The session has ended, or your browser did not send its cookie. Nothing was changed.",
        "no_session_now": "Allow cookies for this address, go back to the app and start again.",
        "request_over": "This sign-in is over",
        "request_over_text": "It was used already, or waited for more than 15 minutes, or belongs to another browser.",
        "request_over_now": "Go back to the app and connect it again.",
        "busy": "Too much at once",
        "busy_text": "Many requests arrived in a short time.",
        "busy_now": "Wait a minute and try again.",
        "unknown_address": "There is no such page",
        "unknown_address_text": "Nothing stands at this address. Perhaps it was mistyped, or a link is out of date.",
        "unknown_address_now": "Check the address, or go back to where you came from.",
        "server_error": "Something went wrong here",
        "server_error_text": "It is our mistake, not yours. Nothing was shared.",
        "server_error_now": "Try again in a moment. If it stays, tell the operator of this service.",
    },
)

GERMAN = Words(
    "de",
    {
        "service": "Banking Data Service",
        "tagline": "Ihre Bankdaten, Ihre Entscheidung",
        "error_prefix": "Fehler: ",
        "sign_in": "Anmelden",
        "sign_in_for": "um mit „{app}“ fortzufahren",
        "sign_in_account": "um Ihre verbundenen Apps zu sehen und zu verwalten",
        "sign_in_next": "Auf der nächsten Seite entscheiden Sie, was „{app}“ sehen darf. Ihr Passwort bleibt hier.",
        "user_name": "Benutzername",
        "password": "Passwort",
        "wrong_login": "Benutzername oder Passwort ist falsch. Bitte prüfen Sie beides.",
        "wait_login": "Zu viele Fehlversuche. Bitte warten Sie {seconds} Sekunden und versuchen Sie es erneut.",
        "check_address": "Prüfen Sie vor der Eingabe, ob oben die Adresse Ihres eigenen Dienstes steht.",
        "consent_title": "Darf „{app}“ Ihre Bankdaten sehen?",
        "consent_asks": "bittet um Zugriff auf Ihre Konten.",
        "unverified": "Selbst registriert, nicht geprüft",
        "unverified_explained": "Diesen Namen kann jeder wählen. Fahren Sie nur fort, wenn Sie dies gerade selbst "
        "begonnen haben.",
        "unverified_program": "Diesen Namen kann jeder wählen, und ein Programm auf diesem Computer erhält Zugriff. "
        "Fahren Sie nur fort, wenn Sie dies gerade selbst begonnen haben.",
        "operator_added": "Von Ihrem Betreiber eingetragen",
        "part_of_the_service": "Teil dieses Dienstes",
        "may": "Wenn Sie zustimmen, kann diese App",
        "may_not": "Sie kann kein Geld bewegen und nichts ändern und sieht Ihr Passwort nie.",
        "read:accounts": "Ihre Konten und Kontostände sehen",
        "read:accounts_more": "Namen, IBANs, Kontostände, Buchungen der letzten 30 Tage; Aktualisierung anstoßen",
        "read:transactions": "Ihre Umsätze lesen und durchsuchen",
        "read:transactions_more": "Beträge, Gegenseiten, Verwendungszwecke, Kategorien",
        "read:cashflow": "Ihre Einnahmen, Ausgaben und wiederkehrenden Zahlungen sehen",
        "read:cashflow_more": "Monatssummen, erkannte Abonnements und die Buchungen dahinter",
        "back_to": "Danach geht es weiter zu",
        "back_to_loopback": "einem Programm auf diesem Computer ({destination})",
        "back_to_app": "einer App auf diesem Gerät ({destination})",
        "loopback_warning": "Ein Programm auf diesem Computer erhält den Zugriff. Erlauben Sie ihn nur, wenn Sie es "
        "selbst gestartet haben.",
        "signed_in_as": "Angemeldet als",
        "lasts_text": "Der Zugriff gilt, bis Sie ihn widerrufen, höchstens {days} Tage.",
        "revoke_where": "Sie können den Zugriff jederzeit widerrufen:",
        "allow": "Erlauben",
        "deny": "Ablehnen",
        "not_you": "Nicht Sie? Abmelden",
        "account": "Ihr Konto",
        "connected": "Verbundene Apps",
        "connected_none": "Keine App ist verbunden. Sobald Sie eine erlauben, erscheint sie hier.",
        "connected_explained": "Diese Apps können Ihre Bankdaten lesen. Ein Widerruf beendet den Zugriff sofort.",
        "can": "Darf",
        "since": "Verbunden seit",
        "last_used": "Zuletzt genutzt gegen",
        "twin": "(Kennung endet auf {end})",
        "months": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "day_written": "{day}. {month} {year}",
        "no_data": "Noch keine Bankdaten",
        "no_data_text": "Apps, die Sie zulassen, sehen nichts, solange Ihre Konten nicht hier sind. Wer diesen Dienst "
        "betreibt, kann einen Auszug einlesen, den Sie bei Ihrer Bank heruntergeladen haben (camt, MT940, OFX, CSV):",
        "no_data_file": "DATEI",
        "no_data_more": "Der Befehl bankdata connect folder verbindet einen Ordner, in den jede Aktualisierung sieht.",
        "revoke": "Widerrufen",
        "revoke_app": "Zugriff von „{app}“ widerrufen",
        "revoked": "Zugriff widerrufen. Die App kann ab sofort nichts mehr lesen.",
        "change_password": "Passwort ändern",
        "current_password": "Jetziges Passwort",
        "new_password": "Neues Passwort",
        "new_password_hint": "Mindestens 12 Zeichen. Einige Wörter zum Merken sind besser als Sonderzeichen.",
        "repeated_password": "Neues Passwort noch einmal",
        "save_password": "Passwort ändern",
        "password_effect": "Alle anderen Browser werden abgemeldet. Verbundene Apps bleiben verbunden.",
        "password_changed": "Passwort geändert. Alle anderen Browser sind abgemeldet.",
        "password_wrong": "Das jetzige Passwort ist falsch.",
        "password_different": "Die beiden neuen Passwörter sind verschieden.",
        "password_short": "Das neue Passwort ist zu kurz: mindestens 12 Zeichen.",
        "password_long": "Das neue Passwort ist zu lang oder hat Zeichen, die nicht möglich sind.",
        "password_common": "Das neue Passwort ist zu verbreitet: Es wird mit als erstes geraten.",
        "password_name": "Das neue Passwort darf nicht Ihr Benutzername sein.",
        "password_wait": "Zu viele Fehlversuche. Bitte warten Sie {seconds} Sekunden und versuchen Sie es erneut.",
        "sign_out": "Abmelden",
        "what_now": "Was Sie tun können",
        "for_developers": "Für die Entwickler der App",
        "back_to_the_app": "Zurück zur App",
        "to_account": "Zu Ihrem Konto",
        "bad_client": "Diese App ist hier nicht bekannt",
        "bad_client_text": "Der Link nennt keine App, die bei diesem Dienst registriert ist. Sie wurden nicht "
        "weitergeleitet.",
        "bad_client_now": "Gehen Sie zur App zurück und verbinden Sie sie neu. Hilft das nicht, informieren Sie ihre "
        "Entwickler.",
        "bad_redirect_uri": "Dieser Link führt an einen Ort, den die App nie genannt hat",
        "bad_redirect_uri_text": "Die Rücksprungadresse passt nicht zu dem, was die App registriert hat. Zu Ihrem "
        "Schutz wurden Sie nicht dorthin geleitet.",
        "bad_redirect_uri_now": "Gehen Sie zur App zurück und versuchen Sie es erneut. Hat Ihnen jemand diesen Link "
        "geschickt, benutzen Sie ihn nicht.",
        "bad_request": "Die Anfrage der App kann so nicht gelingen",
        "bad_request_text": "Sie enthält einen Fehler. Es wurde nichts weitergegeben.",
        "bad_request_now": "Kehren Sie zur App zurück; sie erfährt dabei, was falsch war.",
        "bad_form": "Diese Anfrage ist nicht lesbar",
        "bad_form_text": "Etwas darin ist beschädigt oder wurde doppelt gesendet.",
        "bad_form_now": "Gehen Sie zurück und versuchen Sie es erneut.",
        "too_large": "Diese Anfrage ist zu groß",
        "too_large_text": "Die Adresse oder das Formular hat mehr Zeichen, als dieser Dienst liest.",
        "too_large_now": "Gehen Sie zur App zurück und versuchen Sie es erneut.",
        "foreign_form": "Dieses Formular kam nicht von hier",
        "foreign_form_text": "Zu Ihrer Sicherheit dürfen nur die eigenen Seiten dieses Dienstes es absenden. Es wurde "
        "nichts geändert.",
        "foreign_form_now": "Öffnen Sie die Seite neu und wiederholen Sie, was Sie tun wollten.",
        "no_session": "Ihr Browser ist hier nicht mehr angemeldet",
        "no_session_text": "Die Sitzung ist beendet, oder Ihr Browser hat sein Cookie nicht gesendet. Es wurde nichts "
        "geändert.",
        "no_session_now": "Erlauben Sie Cookies für diese Adresse, gehen Sie zur App zurück und beginnen Sie neu.",
        "request_over": "Diese Anmeldung ist vorbei",
        "request_over_text": "Sie wurde schon benutzt, hat länger als 15 Minuten gewartet oder gehört zu einem anderen "
        "Browser.",
        "request_over_now": "Gehen Sie zur App zurück und verbinden Sie sie neu.",
        "busy": "Zu viel auf einmal",
        "busy_text": "In kurzer Zeit kamen sehr viele Anfragen.",
        "busy_now": "Warten Sie eine Minute und versuchen Sie es erneut.",
        "unknown_address": "Diese Seite gibt es nicht",
        "unknown_address_text": "Unter dieser Adresse steht nichts; vielleicht ein Tippfehler oder ein alter Link.",
        "unknown_address_now": "Prüfen Sie die Adresse, oder gehen Sie dorthin zurück, woher Sie kamen.",
        "server_error": "Hier ist etwas schiefgegangen",
        "server_error_text": "Es ist unser Fehler, nicht Ihrer. Es wurde nichts weitergegeben.",
        "server_error_now": "Versuchen Sie es gleich noch einmal. Bleibt es so, informieren Sie den Betreiber.",
    },
)

LANGUAGES = {"en": ENGLISH, "de": GERMAN}
