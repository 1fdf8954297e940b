"""Password hashes: ``pbkdf2$<iterations>$<salt hex>$<hash hex>``."""

import hashlib
import hmac

SCHEME = "pbkdf2"
ITERATIONS = 1200
"""Low on purpose for the local data set; production reads it from the user directory."""


def make_hash(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return f"{SCHEME}${iterations}${salt.hex()}${digest.hex()}"


def verify(password: str, stored: str) -> bool:
    """Say whether ``password`` gives ``stored``; false for a hash that cannot be read."""
    try:
        scheme, iterations, salt, expected = stored.split("$")
        digest = hashlib.pbkdf2_hmac(
            "sha256", password.encode(), bytes.fromhex(salt), int(iterations)
        )
    except ValueError:
        return False
    return scheme == SCHEME and hmac.compare_digest(digest.hex(), expected)
