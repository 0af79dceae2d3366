"""Proof Key for Code Exchange (RFC 7636), S256 only (interface 5)."""

import base64
import hashlib
import hmac
import re

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)  # base64url of 32 bytes
# "code-verifier = 43*128unreserved" RFC 7636 section 4.1
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)


def is_challenge(text: str) -> bool:
    """Whether the text has the form of a challenge: 43 characters of base64url."""
    return _CHALLENGE.fullmatch(text) is not None


def challenge_of(verifier: str) -> str:
    """The challenge of a verifier: BASE64URL-ENCODE(SHA256(ASCII(code_verifier))), RFC 7636 section 4.2."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii")).digest()).rstrip(b"=").decode()


def is_proven(verifier: str, challenge: str) -> bool:
    """Whether the verifier is well-formed and belongs to the challenge: "If the values are not equal, an error response
    indicating 'invalid_grant' ... MUST be returned." RFC 7636 section 4.6"""
    return _VERIFIER.fullmatch(verifier) is not None and hmac.compare_digest(challenge_of(verifier), challenge)
