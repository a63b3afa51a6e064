"""SCRAM verifiers and login keys of tenants' roles, derived from the password alone.

A role can replace its own verifier, iteration count included, and a client that logs in by password
computes as many iterations as the server names: 2^31 of them keep a thread busy for an hour. So the
gateway logs in by keys that it has computed before, for which libpq asks for no iterations (since
version 18), and every verifier but the expected one is refused at once.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

# PostgreSQL's default. The passwords have 192 random bits and would need none.
ITERATIONS: Final = 4096
SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Scram:
    """What the two sides of a login hold (RFC 5802, section 3).

    verifier: for pg_authid.rolpassword. client_key, server_key: libpq's connection keywords.
    """

    verifier: str = field(repr=False)
    client_key: str = field(repr=False)
    server_key: str = field(repr=False)


@lru_cache(maxsize=4096)
def scram_of(user: str, password: str) -> Scram:
    """Return a role's verifier and keys; always the same for the same arguments."""
    secret = password.encode()
    salt = hmac.digest(secret, b"zonal scram salt " + user.encode(), "sha256")[:SALT_BYTES]
    salted = hashlib.pbkdf2_hmac("sha256", secret, salt, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    stored_key = hashlib.sha256(client_key).digest()
    verifier = f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${_text(stored_key)}:{_text(server_key)}"
    return Scram(verifier, _text(client_key), _text(server_key))


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
