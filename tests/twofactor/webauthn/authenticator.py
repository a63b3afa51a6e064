"""A security key in software, which can lie in every way.

Written from WebAuthn L3 §6 and RFC 9052/9053 alone, so that it shares no code with what it tests
but the CBOR encoder.
"""

import hashlib
import json
import os
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any, TypeVar

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

ORIGIN = "https://app.example.com"
UP, UV, BE, BS, AT, ED = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80


def b64(value: bytes) -> str:
    """Return base64url without padding."""
    return urlsafe_b64encode(value).decode().rstrip("=")


def unb64(text: str) -> bytes:
    """Return the bytes of base64url without padding."""
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(frozen=True)
class Lies:
    """What the authenticator or the browser says instead of the truth; None is the truth.

    key: extra members of the COSE key. signature: instead of a right one. is_attested: an assertion
    that carries a key, as only registrations do.
    """

    type: str | None = None
    challenge: bytes | None = None
    origin: str | None = None
    cross_origin: bool | None = None
    top_origin: str | None = None
    rp_id: str | None = None
    user_present: bool | None = None
    user_verified: bool | None = None
    backup_eligible: bool | None = None
    backed_up: bool | None = None
    sign_count: int | None = None
    user_handle: bytes | None = None
    is_handle_left_out: bool = False
    raw_id: bytes | None = None
    attested_id: bytes | None = None
    format: str | None = None
    statement: dict[str, Any] | None = None
    key: dict[int, Any] | None = None
    signature: bytes | None = None
    is_attested: bool = False


TRUTH = Lies()
T = TypeVar("T")


def _or(lie: T | None, truth: T) -> T:
    return truth if lie is None else lie


@dataclass
class Authenticator:
    """One passkey, made by ``create`` and used by ``get``.

    step: how far the counter moves with each use; 0 for keys that do not count.
    """

    origin: str = ORIGIN
    is_user_verified: bool = True
    is_backup_eligible: bool = False
    format: str = "none"
    step: int = 1
    sign_count: int = 0
    raw_id: bytes = field(default_factory=lambda: os.urandom(32))
    handle: bytes = b""
    private_key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def credential_id(self) -> str:
        """The credential's id in base64url."""
        return b64(self.raw_id)

    def create(self, options: dict[str, Any], lies: Lies = TRUTH) -> dict[str, Any]:
        """Do what ``navigator.credentials.create()`` does; give its JSON form."""
        self.handle = unb64(options["user"]["id"])
        client_data = self._client_data("webauthn.create", options["challenge"], lies)
        data = self._data(_or(lies.rp_id, options["rp"]["id"]), AT, lies) + self._attested(lies)
        kind = _or(lies.format, self.format)
        statement = _or(lies.statement, self._statement(kind, data, client_data, lies))
        attestation = cbor2.dumps({"fmt": kind, "attStmt": statement, "authData": data})
        return self._credential(
            lies,
            clientDataJSON=b64(client_data),
            attestationObject=b64(attestation),
            transports=["internal", "usb", "telepathy"],
        )

    def get(self, options: dict[str, Any], lies: Lies = TRUTH) -> dict[str, Any]:
        """Do what ``navigator.credentials.get()`` does; give its JSON form."""
        self.sign_count += self.step
        client_data = self._client_data("webauthn.get", options["challenge"], lies)
        data = self._data(_or(lies.rp_id, options["rpId"]), AT if lies.is_attested else 0, lies)
        data += self._attested(lies) if lies.is_attested else b""
        response: dict[str, Any] = {
            "clientDataJSON": b64(client_data),
            "authenticatorData": b64(data),
            "signature": b64(_or(lies.signature, self._sign(data, client_data))),
        }
        if not lies.is_handle_left_out:
            response["userHandle"] = b64(_or(lies.user_handle, self.handle))
        return self._credential(lies, **response)

    def _client_data(self, kind: str, challenge: str, lies: Lies) -> bytes:
        said: dict[str, Any] = {
            "type": _or(lies.type, kind),
            "challenge": b64(_or(lies.challenge, unb64(challenge))),
            "origin": _or(lies.origin, self.origin),
            "crossOrigin": _or(lies.cross_origin, False),
        }
        if lies.top_origin is not None:
            said["topOrigin"] = lies.top_origin
        return json.dumps(said).encode()

    def _data(self, rp_id: str, flags: int, lies: Lies) -> bytes:
        flags |= UP if _or(lies.user_present, True) else 0
        flags |= UV if _or(lies.user_verified, self.is_user_verified) else 0
        is_eligible = _or(lies.backup_eligible, self.is_backup_eligible)
        flags |= BE if is_eligible else 0
        flags |= BS if _or(lies.backed_up, is_eligible) else 0
        count = _or(lies.sign_count, self.sign_count)
        return hashlib.sha256(rp_id.encode()).digest() + struct.pack(">BI", flags, count)

    def _attested(self, lies: Lies) -> bytes:
        attested_id = _or(lies.attested_id, _or(lies.raw_id, self.raw_id))
        return bytes(16) + struct.pack(">H", len(attested_id)) + attested_id + self._key(lies)

    def _key(self, lies: Lies) -> bytes:
        numbers = self.private_key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        return cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y} | (lies.key or {}))

    def _statement(self, kind: str, data: bytes, client_data: bytes, lies: Lies) -> dict[str, Any]:
        if kind != "packed":
            return {}
        return {"alg": -7, "sig": _or(lies.signature, self._sign(data, client_data))}

    def _sign(self, data: bytes, client_data: bytes) -> bytes:
        message = data + hashlib.sha256(client_data).digest()
        return self.private_key.sign(message, ec.ECDSA(hashes.SHA256()))

    def _credential(self, lies: Lies, **response: Any) -> dict[str, Any]:
        name = b64(_or(lies.raw_id, self.raw_id))
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": response,
        }
