"""The checks of WebAuthn L3 §7.1 (registration) and §7.2 (assertion).

py_webauthn does the cryptography and compares hashes and flags. The rest is checked here: the
challenge in constant time, framed pages, that the id is the attested one, that formats and keys are
among the offered ones, and the backup flags over a passkey's life.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from webauthn import verify_authentication_response, verify_registration_response
from webauthn.helpers import (
    bytes_to_base64url,
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorAssertionResponse,
    AuthenticatorAttestationResponse,
    CredentialDeviceType,
    RegistrationCredential,
)

from twofactor.webauthn.responses import (
    BACKED_UP,
    BACKUP_ELIGIBLE,
    FLAGS_AT,
    Assertion,
    Attestation,
    ClientData,
)

ALGORITHMS: Final = [
    COSEAlgorithmIdentifier.ECDSA_SHA_256,
    COSEAlgorithmIdentifier.EDDSA,
    COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256,
]
# No attestation is requested: browsers then send none, or a self attestation. Parsers of other
# formats would only add attack surface.
FORMATS: Final = frozenset({"none", "packed"})
MIN_RSA_BITS: Final = 2048


class VerificationFailed(Exception):
    """A well-formed response that fails the verification; its text is a sentence saying why."""


@dataclass(frozen=True, slots=True)
class ExpectedResponse:
    """The challenge, RP ID and origins that a response must match."""

    challenge: bytes
    rp_id: str
    origins: list[str]


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A new credential."""

    public_key: bytes
    sign_count: int
    is_user_verified: bool
    is_backup_eligible: bool


@dataclass(frozen=True, slots=True)
class VerifiedAssertion:
    """A verified assertion; the caller still has to compare the counter."""

    sign_count: int
    is_user_verified: bool
    is_backup_eligible: bool


def register(response: Attestation, asked: ExpectedResponse) -> NewCredential:
    """Return the credential of a registration (§7.1). Raises VerificationFailed."""
    _check_client_data(response.client_data, "webauthn.create", asked)
    _check_backup_flags(response.authenticator_data)
    if response.format not in FORMATS:
        raise VerificationFailed("This attestation format was not asked for.")
    credential = RegistrationCredential(
        id=bytes_to_base64url(response.raw_id),
        raw_id=response.raw_id,
        response=AuthenticatorAttestationResponse(
            client_data_json=response.client_data_json,
            attestation_object=response.attestation_object,
        ),
    )
    try:
        verified = verify_registration_response(
            credential=credential,
            expected_challenge=asked.challenge,
            expected_rp_id=asked.rp_id,
            expected_origin=asked.origins,
            supported_pub_key_algs=ALGORITHMS,
        )
    except Exception as exc:  # malicious bytes make its parsers raise any exception
        raise VerificationFailed("The passkey could not be verified.") from exc
    if verified.credential_id != response.raw_id:
        raise VerificationFailed("The id is not the one from the authenticator.")
    _check_key(verified.credential_public_key)
    return NewCredential(
        public_key=verified.credential_public_key,
        sign_count=verified.sign_count,
        is_user_verified=verified.user_verified,
        is_backup_eligible=verified.credential_device_type == CredentialDeviceType.MULTI_DEVICE,
    )


def prove(response: Assertion, asked: ExpectedResponse, *, public_key: bytes) -> VerifiedAssertion:
    """Verify an assertion of the passkey with this key (§7.2). Raises VerificationFailed."""
    _check_client_data(response.client_data, "webauthn.get", asked)
    _check_backup_flags(response.authenticator_data)
    credential = AuthenticationCredential(
        id=bytes_to_base64url(response.raw_id),
        raw_id=response.raw_id,
        response=AuthenticatorAssertionResponse(
            client_data_json=response.client_data_json,
            authenticator_data=response.authenticator_data,
            signature=response.signature,
        ),
    )
    try:
        verified = verify_authentication_response(
            credential=credential,
            expected_challenge=asked.challenge,
            expected_rp_id=asked.rp_id,
            expected_origin=asked.origins,
            credential_public_key=public_key,
            # The caller compares the counter: py_webauthn does so before it verifies the signature,
            # so anyone could trigger the alarm.
            credential_current_sign_count=0,
        )
    except Exception as exc:  # malicious bytes make its parsers raise any exception
        raise VerificationFailed("The assertion could not be verified.") from exc
    return VerifiedAssertion(
        sign_count=verified.new_sign_count,
        is_user_verified=verified.user_verified,
        is_backup_eligible=verified.credential_device_type == CredentialDeviceType.MULTI_DEVICE,
    )


def _check_client_data(client_data: ClientData, kind: str, asked: ExpectedResponse) -> None:
    if client_data.type != kind:
        raise VerificationFailed("The response is of another ceremony.")
    if not hmac.compare_digest(client_data.challenge, asked.challenge):
        raise VerificationFailed("The response answers another challenge.")
    if client_data.origin not in asked.origins:
        raise VerificationFailed("The response comes from another origin.")
    if client_data.is_framed:
        raise VerificationFailed("The response was made inside another site's page.")


def _check_backup_flags(authenticator_data: bytes) -> None:
    flags = authenticator_data[FLAGS_AT]
    if flags & BACKED_UP and not flags & BACKUP_ELIGIBLE:
        raise VerificationFailed("The passkey says it is backed up, and that it cannot be.")


def _check_key(encoded: bytes) -> None:
    """Refuse a key that is unusable or does not match its algorithm (§5.8.5)."""
    try:
        decoded = decode_credential_public_key(encoded)
        key = decoded_public_key_to_cryptography(decoded)
    except Exception as exc:  # malicious bytes make its parsers raise any exception
        raise VerificationFailed("The key cannot be used.") from exc
    fits = {
        COSEAlgorithmIdentifier.ECDSA_SHA_256: isinstance(key, EllipticCurvePublicKey)
        and isinstance(key.curve, SECP256R1),
        COSEAlgorithmIdentifier.EDDSA: isinstance(key, Ed25519PublicKey),
        COSEAlgorithmIdentifier.RSASSA_PKCS1_v1_5_SHA_256: isinstance(key, RSAPublicKey)
        and key.key_size >= MIN_RSA_BITS,
    }
    if not fits.get(decoded.alg):
        raise VerificationFailed("The key does not fit its algorithm.")
