"""Signing keys of the fake providers, generated once because RSA is slow."""

import base64
import hashlib
from functools import lru_cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import RSAAlgorithm


@lru_cache(maxsize=8)
def rsa_key(name: str) -> rsa.RSAPrivateKey:
    """Return the RSA key of a name."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@lru_cache(maxsize=8)
def ec_pem(name: str) -> str:
    """Return the P-256 key of a name, in PEM form."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def jwk(name: str) -> dict[str, Any]:
    """Return a key's public part as a JWKS lists it."""
    public = RSAAlgorithm.to_jwk(rsa_key(name).public_key(), as_dict=True)
    return public | {"kid": name, "use": "sig", "alg": "RS256"}


def sign(claims: dict[str, Any], name: str, *, kid: str = "") -> str:
    """Return an ID token signed by the key of a name."""
    return jwt.encode(claims, rsa_key(name), algorithm="RS256", headers={"kid": kid or name})


def at_hash(access_token: str) -> str:
    """Return OpenID Connect's hash of an access token (Core §3.1.3.6)."""
    hashed = hashlib.sha256(access_token.encode()).digest()
    return base64.urlsafe_b64encode(hashed[:16]).decode().rstrip("=")
