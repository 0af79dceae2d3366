"""Secrets in the form of text: how they are made, and their hashes for the store."""

import base64
import hashlib
import hmac
import secrets
import string

LETTERS = string.ascii_letters + string.digits


def new_secret() -> str:
    """A random secret of 256 bits in 43 characters of base64url (RFC 6749 section 10.10 asks for at least 128 bits)."""
    return secrets.token_urlsafe(32)


def new_letters(count: int) -> str:
    """`count` random ASCII letters and digits, for clients that split addresses at other characters."""
    return "".join(secrets.choice(LETTERS) for _ in range(count))


def new_client_id() -> str:
    """A random client id of 192 bits after `app_`, since commands take a leading dash for an option."""
    return f"app_{secrets.token_urlsafe(24)}"


def new_grant_id() -> str:
    """A random id for a grant, of 96 bits."""
    return f"g{secrets.token_hex(12)}"


def stored_hash(secret: str) -> str:
    """The SHA-256 under which a secret is stored, in hexadecimal: enough for 256 random bits, not for passwords."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_hash(key: bytes, text: str) -> str:
    """The HMAC of a text as base64url, which only a holder of `key` can compute."""
    digest = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_same(one: str, other: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
