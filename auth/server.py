"""The authorization server: all its parts over one store."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from auth import lifetimes
from auth.apps.client_documents import ClientDocuments, Fetch
from auth.apps.clients import Clients
from auth.cleanup import Cleanup
from auth.consent import Consent
from auth.errors import InvalidRequest
from auth.instants import Now, with_zone
from auth.people.errands import Errands
from auth.people.identity_provider import IdentityProvider
from auth.people.links import OneTimeLinks
from auth.people.operators import Operators
from auth.people.passkeys import Passkeys
from auth.people.password_change import PasswordChange
from auth.people.password_hashing import Passwords
from auth.people.provider_metadata import AskProvider, ProviderSettings
from auth.people.provider_sign_in import ProviderSignIn
from auth.people.second_factor import SecondFactors
from auth.people.sessions import Sessions
from auth.people.shares import Shares
from auth.people.sign_in import SignIn
from auth.people.throttle import Throttles
from auth.policy import Policy, Resource
from auth.record import AccessRecord
from auth.scopes import ALL_SCOPES
from auth.security_events import Events
from auth.tokens.access_check import AccessCheck
from auth.tokens.access_tokens import AccessTokens
from auth.tokens.calendar import CalendarLinks
from auth.tokens.codes import AuthorizationCodes
from auth.tokens.grants import Grants
from auth.tokens.keys import KeyRing
from auth.tokens.one_time import OneTime
from auth.tokens.refresh_tokens import RefreshTokens
from auth.tokens.simplefin import SimpleFinAccess
from storage import users
from storage.database import Database, Session
from storage.keys.places import KeyPlace
from storage.oauth import browsers, calendar, grants, identities, links, shares
from storage.oauth.grants import EVERYTHING, Terms
from storage.users import User, UserUnknown

OTHER_PROCESSES_SEEN_WITHIN = timedelta(milliseconds=500)


class LastWayIn(Exception):
    """A user has no other way to sign in."""


class AuthorizationServer:
    """The parts of the authorization server: `clients` registers apps, `sign_in` and `sessions` identify people,
    `consent` asks them, `codes` and `refresh_tokens` are exchanged for tokens, `grants` ends access, `simplefin` and
    `calendar` admit SimpleFIN and calendar apps, `links` let people in, `errands` wait for what they come back with,
    `operators` look after them, `shares` say what one lets another see, `access` finds the principal of each request,
    `record` counts what was done, `cleanup` deletes what has expired."""

    def __init__(
        self,
        database: Database,
        keys: Path | KeyPlace,
        policy: Policy,
        now: Now,
        *,
        has_other_processes: bool = False,
        passwords: Passwords | None = None,
        fetch: Fetch | None = None,
        provider: ProviderSettings | None = None,
        ask: AskProvider | None = None,
    ) -> None:
        """Set up all parts; on the first start, keys are made in this folder or place. Raises KeysUnusable.

        `provider` is the household's own, at which people may sign in, and `ask` asks it. `fetch` gets the documents of
        apps that have one; None only where nobody asks for one. `has_other_processes` means that several servers use
        the store. `passwords` hashes passwords; None: at the usual cost.
        """
        now = with_zone(now)
        self.policy = policy
        self.keys = KeyRing(keys, now=now())
        tokens = AccessTokens(
            self.keys,
            issuer=policy.issuer,
            audience=policy.address_of("data"),
            other_audiences=[policy.address_of("mcp")],
        )
        self.record = AccessRecord(database, now)
        events = Events(self.keys.secret("log"), shows_addresses=policy.shows_addresses, record=self.record)
        recheck = OTHER_PROCESSES_SEEN_WITHIN if has_other_processes else None
        self.access = AccessCheck(database, tokens, now, recheck=recheck)
        self.grants = Grants(database, tokens, self.access, policy, events, now)
        one_time = OneTime(database, self.grants, events)
        self.refresh_tokens = RefreshTokens(
            tokens, self.grants, one_time, policy, self.keys.secret("refresh successors"), now
        )
        self.codes = AuthorizationCodes(database, self.grants, self.refresh_tokens, one_time, now)
        self.consent = Consent(database, self.keys.secret("codes"), self.codes, events, now)
        self.clients = Clients(database, self.grants, policy, events, self.keys.secret, now)
        self.documents = ClientDocuments(database, policy, fetch, events, now)
        self.passwords = passwords or Passwords()
        self.sessions = Sessions(database, self.keys.secret("sessions"), now, ended=self.access.forget)
        throttles = Throttles(database, self.keys.secret("throttles"))
        self.simplefin = SimpleFinAccess(database, self.grants, self.access, throttles, policy, events, now)
        self.calendar = CalendarLinks(database, policy, events, now)
        self.second_factors = SecondFactors(database, self.keys.secret("second factors"), events, now)
        self.passkeys = Passkeys(database, policy, events, now)
        self.password_change = PasswordChange(database, self.sessions, events, now)
        ways_in = self.passwords, self.second_factors, self.passkeys, self.password_change, events, now
        self.sign_in = SignIn(database, self.sessions, throttles, *ways_in, provider is not None and provider.is_only)
        self.links = OneTimeLinks(database, policy, self.passwords, self.password_change, events, now)
        self.errands = Errands(database, now)
        self.provider = self._at_provider(provider, ask, database, events, now) if provider is not None else None
        self.operators = Operators(database, self.sessions, self.access, events, now)
        self.shares = Shares(database, self.links, events, now)
        self.cleanup = Cleanup(database, now)
        self._database = database
        self._events = events
        self._now = now

    def _at_provider(
        self, settings: ProviderSettings, ask: AskProvider | None, database: Database, events: Events, now: Now
    ) -> ProviderSignIn:
        assert ask is not None, "whoever has a provider can ask it"
        return ProviderSignIn(
            IdentityProvider(settings, ask, redirect_uri=self.policy.provider_redirect_uri, events=events, now=now),
            database,
            self.errands,
            self.sessions,
            self.sign_in,
            self.second_factors,
            self.links,
            self.keys.secret("provider"),
            events,
            now,
        )

    def issue_token(
        self,
        user_id: str,
        scopes: frozenset[str],
        lifetime: timedelta,
        *,
        resource: Resource = "data",
        terms: Terms = EVERYTHING,
    ) -> str:
        """Issue an access token that opens this user's data to the operator, without asking the user; it is logged and
        recorded, and listed and revocable like any other. Raises UserUnknown, and InvalidRequest for scopes or a
        lifetime that cannot be had."""
        if not scopes or not scopes <= frozenset(ALL_SCOPES):
            raise InvalidRequest(f"The scopes are {', '.join(ALL_SCOPES)}.")
        if not timedelta() < lifetime <= lifetimes.GRANT:
            raise InvalidRequest(f"The lifetime must lie between 1 second and {lifetimes.GRANT.days} days.")
        if users.find(self._database, user_id) is None:
            raise UserUnknown("There is no user of this id.")
        client_id = self.clients.ensure_builtin()
        return self.grants.issue_alone(
            user_id=user_id, client_id=client_id, scopes=scopes, lifetime=lifetime, resource=resource, terms=terms
        )

    def signed_in_lately(self, grant_id: str) -> bool:
        """Whether the person has shown who they are within five minutes in the browser session of this grant."""
        grant = grants.find(self._database, grant_id)
        return grant is not None and self.sessions.is_proven_lately(grant.session_hash)

    def has_way_in(self, user: User, *, at: Session | None = None) -> bool:
        """Whether the user can sign in at all, as the session `at` sees it."""
        provider, session = self.provider, at or self._database
        if provider is not None and provider.identity_of(user.id, at=session) is not None:
            return True
        is_only = provider is not None and provider.settings.is_only
        return not is_only and (user.password_hash is not None or self.passkeys.is_any_alone(session, user.id))

    def keeps_a_way_in(self, user: User) -> Callable[[Session], None]:
        """A check for the end of a transaction that takes a way in from a user, which raises LastWayIn if none is left;
        of two such transactions the second sees what the first has done."""

        def check(session: Session) -> None:
            users.change_ways_in(session)
            if not self.has_way_in(user, at=session):
                raise LastWayIn

        return check

    def note_provider_away(self, reason: str) -> None:
        """Log that the household's provider cannot be asked, and why."""
        self._events.alarm("the provider is away", reason=reason.replace(" ", "_"))

    def remove_user(self, user_id: str) -> None:
        """Delete a user's grants with their tokens and SimpleFIN apps, browser sessions, calendar address and links;
        their tokens are refused from now on. What else is stored about them goes with the user."""

        def work(session: Session) -> None:
            grants.remove_all(session, user_id)
            browsers.remove_all(session, user_id)
            calendar.remove(session, user_id)
            links.remove_all(session, user_id)
            shares.remove_all(session, user_id, now=self._now())
            identities.remove_all(session, user_id)

        self._database.atomically(work)
        self.access.forget()

    def rotate_keys(self) -> str:
        """Make a new signing key, log that, and return its id (kid). Tokens signed by the previous one are accepted for
        one more lifetime of an access token, even those of the operator that were to last longer."""
        kid = self.keys.rotate(now=self._now())
        self._events.info("signing key rotated", kid=kid)
        return kid

    def reseal_keys(self) -> None:
        """Seal the stored keys anew, with the first line of the operator's secret, and log that; tokens stay valid."""
        self.keys.reseal()
        self._events.info("signing keys sealed anew")

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The public keys that verify valid access tokens, as a JWK set (RFC 7517 section 5)."""
        return self.keys.jwks(now=self._now())
