"""SCRAM verifiers and login keys of tenants' roles, derived from their passwords.

A role can replace its own verifier and its number of iterations, and a client that logs in with a
password computes the number of iterations that the server sends: 2^31 occupy a thread for an hour.
So the gateway logs in with keys that it has computed before. With them libpq (since version 18)
computes no iterations, and a login with any other verifier than the expected one fails immediately.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

# PostgreSQL's default; more are not needed, because passwords have 192 random bits.
ITERATIONS: Final = 4096
SALT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Scram:
    """The secrets of the server and the client (RFC 5802, section 3).

    verifier: for pg_authid.rolpassword.
    client_key, server_key: for libpq's keywords scram_client_key and scram_server_key.
    """

    verifier: str = field(repr=False)
    client_key: str = field(repr=False)
    server_key: str = field(repr=False)


@lru_cache(maxsize=4096)
def scram_of(user: str, password: str) -> Scram:
    """Return a role's verifier and keys, which depend only on the arguments."""
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
