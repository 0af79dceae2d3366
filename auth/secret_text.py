"""Secrets that travel as text: how they are made, and what the store keeps of them."""

import base64
import hashlib
import hmac
import secrets
import string

LETTERS = string.ascii_letters + string.digits


def new_secret() -> str:
    """256 random bits (RFC 6749 section 10.10 asks for at least 128)."""
    return secrets.token_urlsafe(32)


def new_letters(count: int) -> str:
    """Random letters and digits, just under six bits each: for clients that take addresses apart by their signs."""
    return "".join(secrets.choice(LETTERS) for _ in range(count))


def new_client_id() -> str:
    """192 random bits; a word in front, for a command line takes what begins with a dash for an option."""
    return f"app_{secrets.token_urlsafe(24)}"


def stored_hash(secret: str) -> str:
    """What the store keeps. SHA-256 is enough for 256 random bits; passwords are another matter."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def derived(key: bytes, text: str) -> str:
    """A secret that only the holder of `key` can compute from `text`."""
    digest = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
