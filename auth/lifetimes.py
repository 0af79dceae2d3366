"""How long things of the authorization server last: sign-ins, codes, tokens, access, and what is remembered of them.

Two can be set by the operator, in handlers/settings.py: the grace of a used refresh token, and the period in which an
address may register so many apps.
"""

from datetime import timedelta

# People at a browser
SESSION = timedelta(days=7)
SESSION_BY_PROVIDER = timedelta(days=1)  # then the household's provider says anew whether somebody may come in
SESSION_IDLE = timedelta(hours=12)  # without a visit
SESSION_SEEN_EVERY = timedelta(minutes=5)  # how often a visit is stored at most, so that not every page writes
SECOND_STEP = timedelta(minutes=5)  # from the password to the second factor
SECOND_FACTOR_SETUP = timedelta(minutes=15)
PASSKEY_ANSWER = timedelta(minutes=5)
LATELY = timedelta(minutes=5)  # after a sign-in, no further proof of who somebody is is needed to share more
ERRAND = timedelta(minutes=10)  # at the household's provider, and what is asked of the person afterwards
KNOWN_BROWSER = timedelta(days=180)
CONSENT_REQUEST = timedelta(minutes=15)  # from an app's request to the answer of its user
WAITING_REQUEST = timedelta(minutes=15)  # of an app or for a page, until somebody has signed in

FIRST_LINK = timedelta(hours=24)  # by which the first person of a store comes in
INVITATION = timedelta(days=7)
PASSWORD_LINK = timedelta(hours=24)
SIGN_IN_LINK = timedelta(minutes=10)
OFFER = timedelta(days=7)  # of a share, to be accepted

# Guesses of passwords
WAIT_FIRST = timedelta(seconds=15)  # doubled with each further failure
WAIT_MAX = timedelta(minutes=15)  # never permanent (oauth.md 3.4)
FAILURES_FORGOTTEN = timedelta(hours=1)

# Apps
CODE = timedelta(seconds=60)  # ASVS 5.0 10.4.3: at most one minute
SETUP_TOKEN = timedelta(hours=24)  # of SimpleFIN
ACCESS_TOKEN = timedelta(hours=1)  # interface 5
REFRESH_TOKEN = timedelta(days=30)
GRANT = timedelta(days=365)
LEEWAY = timedelta(seconds=5)  # oauth.md 2.5: clocks of two machines may differ
PROVIDER_LEEWAY = timedelta(seconds=60)  # the same, of the household's provider
PROVIDER_DOCUMENTS = timedelta(hours=1)  # how long its metadata and keys are believed
PROVIDER_PAUSE = timedelta(seconds=5)  # before one that was away is asked again
PROVIDER_KEYS_EVERY = timedelta(minutes=1)  # how often its keys are asked for anew because one is unknown
RETIRED_KEY = ACCESS_TOKEN + LEEWAY  # oauth.md 3.7
CLIENT_UNUSED = timedelta(days=365)  # so that an app whose access has ended can ask again
CLIENT_USE_NOTED_EVERY = timedelta(days=1)
CLIENT_DOCUMENT_MIN, CLIENT_DOCUMENT_MAX = timedelta(minutes=5), timedelta(days=1)  # in memory, as its server says

# What is remembered
ACCESS_RECORD = timedelta(days=396)  # 13 months: the last month can be compared with the same one a year ago
SWEEP_EVERY = timedelta(minutes=10)


def of_session(*, is_by_provider: bool) -> timedelta:
    """How long a browser session lasts at most from its sign-in on."""
    return SESSION_BY_PROVIDER if is_by_provider else SESSION
