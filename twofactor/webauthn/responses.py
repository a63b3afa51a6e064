"""Strict parsing of browsers' responses (WebAuthn L3 §5.1, the JSON forms), without verification.

Only the format is checked: MalformedCredential (400) is not counted as an attempt.

Authenticators write CBOR without tags and indefinite lengths, in few levels (CTAP 2.1 §8). This is
checked before any other parser reads the bytes. A general parser resolves shared references (tags
28 and 29), and py_webauthn serializes the result again: 250 bytes then take seconds, and each
further ten bytes double the time.
"""

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from webauthn.helpers import parse_cbor
from webauthn.helpers.exceptions import InvalidCBORData
from webauthn.helpers.structs import AuthenticatorTransport

from common.errors import FieldError
from twofactor.errors import MalformedCredential

MAX_ID_BYTES: Final = 1023  # WebAuthn L3 §7.1 step 25
MAX_HANDLE_BYTES: Final = 64  # WebAuthn L3 §5.4.3
MAX_CLIENT_DATA_BYTES: Final = 8192
MAX_ATTESTATION_BYTES: Final = 16384
MAX_AUTHENTICATOR_DATA_BYTES: Final = 4096
MAX_SIGNATURE_BYTES: Final = 2048
# RP ID hash, flags, counter; then the attested credential and the extensions (§6.1).
HEAD_BYTES: Final = 37
FLAGS_AT: Final = 32
ATTESTED: Final = 0x40
ATTESTED_HEAD_BYTES: Final = 18
BACKUP_ELIGIBLE: Final = 0x08
BACKED_UP: Final = 0x10
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")
_TRANSPORTS: Final = frozenset(transport.value for transport in AuthenticatorTransport)
# CTAP 2.1 §8 allows four; an attestation object wraps the authenticator's own in two.
MAX_CBOR_DEPTH: Final = 6
_CBOR_BYTES_AND_TEXT: Final = (2, 3)
_CBOR_ARRAY: Final = 4
_CBOR_MAP: Final = 5
_CBOR_TAG: Final = 6
_CBOR_FIRST_LONG: Final = 24
_CBOR_LAST_LONG: Final = 27


@dataclass(frozen=True, slots=True)
class ClientData:
    """The client data. is_framed: the ceremony ran inside another site's page."""

    type: str
    challenge: bytes
    origin: str
    is_framed: bool


@dataclass(frozen=True, slots=True)
class Attestation:
    """The response of ``navigator.credentials.create()``."""

    raw_id: bytes
    client_data: ClientData
    client_data_json: bytes
    attestation_object: bytes
    authenticator_data: bytes
    format: str
    transports: list[str]


@dataclass(frozen=True, slots=True)
class Assertion:
    """The response of ``navigator.credentials.get()``. user_handle: None if none was sent."""

    raw_id: bytes
    client_data: ClientData
    client_data_json: bytes
    authenticator_data: bytes
    signature: bytes
    user_handle: bytes | None


def attestation(credential: Mapping[str, Any]) -> Attestation:
    """Read the credential that finishes a registration.

    Raises MalformedCredential (400), naming the member.
    """
    raw_id, response = _envelope(credential)
    client_data_json = _bytes(response, "clientDataJSON", MAX_CLIENT_DATA_BYTES)
    attested = _bytes(response, "attestationObject", MAX_ATTESTATION_BYTES)
    kind, authenticator_data = _opened(attested)
    sent = response.get("transports")
    named = sent if isinstance(sent, list) else []
    return Attestation(
        raw_id=raw_id,
        client_data=_client_data(client_data_json),
        client_data_json=client_data_json,
        attestation_object=attested,
        authenticator_data=authenticator_data,
        format=kind,
        # Unknown names are ignored: they are hints for the browser (§5.8.4).
        transports=sorted(_TRANSPORTS.intersection(n for n in named if isinstance(n, str))),
    )


def assertion(credential: Mapping[str, Any]) -> Assertion:
    """Read the credential that answers a challenge.

    Raises MalformedCredential (400), naming the member.
    """
    raw_id, response = _envelope(credential)
    client_data_json = _bytes(response, "clientDataJSON", MAX_CLIENT_DATA_BYTES)
    data = _bytes(response, "authenticatorData", MAX_AUTHENTICATOR_DATA_BYTES)
    if len(data) < HEAD_BYTES or data[FLAGS_AT] & ATTESTED:
        # Attested credential data belongs to registrations only (§6.1).
        raise _malformed("response.authenticatorData")
    _hold(data, "response.authenticatorData", start=HEAD_BYTES)
    handle = response.get("userHandle")
    return Assertion(
        raw_id=raw_id,
        client_data=_client_data(client_data_json),
        client_data_json=client_data_json,
        authenticator_data=data,
        signature=_bytes(response, "signature", MAX_SIGNATURE_BYTES),
        user_handle=None if handle is None else _bytes(response, "userHandle", MAX_HANDLE_BYTES),
    )


def decode_id(text: object) -> bytes:
    """Return a credential id's bytes.

    Raises MalformedCredential (400) if it is not base64url or longer than 1023 bytes.
    """
    return _decode(text, "id", MAX_ID_BYTES)


def _envelope(credential: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    if credential.get("type") != "public-key":
        raise _malformed("type")
    raw_id = _decode(credential.get("rawId"), "rawId", MAX_ID_BYTES)
    if not raw_id or decode_id(credential.get("id")) != raw_id:
        raise _malformed("id")
    response = credential.get("response")
    if not isinstance(response, Mapping):
        raise _malformed("response")
    return raw_id, response


def _opened(attested: bytes) -> tuple[str, bytes]:
    """Return an attestation object's format and authenticator data, safe for further parsing."""
    name = "response.attestationObject"
    _hold(attested, name)
    try:
        value = parse_cbor(attested)
    except InvalidCBORData as exc:
        raise _malformed(name) from exc
    if not isinstance(value, dict):
        raise _malformed(name)
    kind, data = value.get("fmt"), value.get("authData")
    if not isinstance(kind, str) or not isinstance(data, bytes) or len(data) < HEAD_BYTES:
        raise _malformed(name)
    start = HEAD_BYTES
    if data[FLAGS_AT] & ATTESTED:
        start += ATTESTED_HEAD_BYTES
        start += int.from_bytes(data[start - 2 : start], "big")
    _hold(data, name, start=start)
    return kind, data


def _client_data(raw: bytes) -> ClientData:
    name = "response.clientDataJSON"
    try:
        value = orjson.loads(raw)
    except (orjson.JSONDecodeError, RecursionError) as exc:
        raise _malformed(name) from exc
    if not isinstance(value, dict):
        raise _malformed(name)
    kind, origin = value.get("type"), value.get("origin")
    is_cross = value.get("crossOrigin", False)
    if not (isinstance(kind, str) and isinstance(origin, str) and isinstance(is_cross, bool)):
        raise _malformed(name)
    return ClientData(
        type=kind,
        challenge=_decode(value.get("challenge"), name, MAX_CLIENT_DATA_BYTES),
        origin=origin,
        is_framed=is_cross or value.get("topOrigin") is not None,
    )


def _hold(data: bytes, name: str, *, start: int = 0) -> None:
    try:
        check_cbor(data, start=start)
    except ValueError as exc:
        raise _malformed(name) from exc


def _bytes(response: Mapping[str, Any], name: str, limit: int) -> bytes:
    return _decode(response.get(name), f"response.{name}", limit)


def _decode(text: object, name: str, limit: int) -> bytes:
    # Python's decoder ignores invalid characters; here they are refused.
    if not isinstance(text, str) or not _BASE64URL.fullmatch(text):
        raise _malformed(name)
    try:
        value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as exc:
        raise _malformed(name) from exc
    if len(value) > limit:
        raise _malformed(name)
    return value


def _malformed(name: str) -> MalformedCredential:
    return MalformedCredential(
        fields=[FieldError(f"credential.{name}", "malformed", "Not what a browser sends here.")]
    )


def check_cbor(data: bytes, *, start: int = 0) -> None:
    """Raise ValueError unless all items from ``start`` on are canonical CTAP2 CBOR."""
    at = start
    while at < len(data):
        at = _end_of_cbor_item(data, at, depth=0)


def _end_of_cbor_item(data: bytes, at: int, *, depth: int) -> int:
    if depth > MAX_CBOR_DEPTH:
        raise ValueError("nested too deep")
    major, value, at = _cbor_head(data, at)
    if major in _CBOR_BYTES_AND_TEXT:
        at += value
    elif major in {_CBOR_ARRAY, _CBOR_MAP}:
        # Each item has at least one byte, so the loop ends with the data, not with the claimed
        # length.
        for _ in range(value * (2 if major == _CBOR_MAP else 1)):
            at = _end_of_cbor_item(data, at, depth=depth + 1)
    if at > len(data):
        raise ValueError("cut short")
    return at


def _cbor_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return an item's major type, its number or length, and where its content begins."""
    if at >= len(data):
        raise ValueError("cut short")
    major, short = data[at] >> 5, data[at] & 0x1F
    if major == _CBOR_TAG or short > _CBOR_LAST_LONG:
        raise ValueError("no CTAP2 CBOR")
    if short < _CBOR_FIRST_LONG:
        return major, short, at + 1
    size = 1 << (short - _CBOR_FIRST_LONG)
    return major, int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
