"""Signed access tokens.

A token is ``fg1.<kid>.<claims>.<signature>``: the claims are canonical JSON in base32, the
signature is HMAC-SHA256 over everything before it. It looks like a JWT and is on purpose not
one: there is no algorithm field that a caller could choose.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

VERSION = "fg1"
LEEWAY_S = 30
"""How far the clocks of two workers may be apart."""


class TokenError(Exception):
    """The token is malformed, forged, early or expired."""


@dataclass(frozen=True)
class Claims:
    sub: str
    iat: int
    exp: int
    aud: str
    ver: int = 3


def _pack(raw: bytes) -> str:
    return base64.b32encode(raw).decode("ascii").rstrip("=").lower()


def _unpack(text: str) -> bytes:
    padded = text.upper() + "=" * (-len(text) % 8)
    return base64.b32decode(padded)


class TokenSigner:
    """Issues and verifies tokens with one active key and any number of retired ones."""

    def __init__(self, keys: dict[str, str], active_kid: str, audience: str, ttl_s: int) -> None:
        if active_kid not in keys:
            raise ValueError(f"active key {active_kid!r} is not in the key set")
        self._keys = keys
        self._active = active_kid
        self._audience = audience
        self._ttl_s = ttl_s

    @property
    def ttl_s(self) -> int:
        return self._ttl_s

    def issue(self, subject: str, now: float) -> str:
        """Return a token for ``subject`` that is good for ``ttl_s`` seconds."""
        claims = Claims(subject, int(now), int(now) + self._ttl_s, self._audience)
        body = _pack(json.dumps(asdict(claims), sort_keys=True, separators=(",", ":")).encode())
        head = f"{VERSION}.{self._active}.{body}"
        return f"{head}.{self._sign(self._active, head)}"

    def verify(self, token: str, now: float) -> Claims:
        """Return the claims of a good token.

        Raises:
            TokenError: With a short reason, never with the token itself.
        """
        parts = token.split(".")
        if len(parts) != 4 or parts[0] != VERSION:
            raise TokenError("malformed")
        _, kid, body, signature = parts
        if kid not in self._keys:
            raise TokenError(f"unknown key {kid}")
        expected = self._sign(kid, ".".join(parts[:3]))
        if not hmac.compare_digest(expected, signature):
            raise TokenError("bad signature")
        claims = Claims(**json.loads(_unpack(body)))
        if claims.aud != self._audience:
            raise TokenError(f"wrong audience {claims.aud}")
        if claims.iat > now + LEEWAY_S:
            raise TokenError("issued in the future")
        if claims.exp <= now - LEEWAY_S:
            raise TokenError("expired")
        return claims

    def _sign(self, kid: str, text: str) -> str:
        digest = hmac.new(self._keys[kid].encode(), text.encode(), hashlib.sha256).digest()
        return _pack(digest)


def fingerprint(token: str) -> str:
    """Short name of a token for logs and traces; the token itself must not be written."""
    return hashlib.sha256(token.encode()).hexdigest()[:10]
