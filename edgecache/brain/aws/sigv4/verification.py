"""Parses and checks a request's signature, in the Authorization header or in the query."""

import hmac
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.canonical import (
    ALGORITHM,
    canonical_request,
    signature,
    signing_key,
    string_to_sign,
    uris,
)
from edgecache.http.response_head import parse_http_date

SKEW: Final = timedelta(minutes=15)
PRESIGNED_LIMIT_S: Final = 604_800
UNSIGNED: Final = "UNSIGNED-PAYLOAD"
REMEMBERED_CHARS: Final = 1024
# Signing keys are remembered with their region.
MAX_REGION_CHARS: Final = 64
AMZ_DATE: Final = "%Y%m%dT%H%M%SZ"
QUERY_ERROR: Final = "AuthorizationQueryParametersError"

_SIGNER: Final = re.compile(
    r"AWS4-HMAC-SHA256[ ]+Credential=([^,\s]+)[,\s]+SignedHeaders=([^,\s]+)[,\s]+"
)
_SIGNATURE: Final = re.compile(r"([0-9A-Fa-f]+)[,\s]*")
_SECONDS: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_AMZ_DATE: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z", re.ASCII)
_SIGNED_HEADERS: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+(;[a-z0-9!#$%&'*+.^_`|~-]+)*")
_PARAMETERS: Final = (
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
)


class SignedHeaders(NamedTuple):
    """The names that a signature covers. is_sorted: and each is named once, as it must be."""

    names: tuple[str, ...]
    all: frozenset[str]
    is_sorted: bool


class SignatureClaims(NamedTuple):
    """Access key and signature of a request. payload_hash: the end of the canonical request.

    expires_s: how long a presigned request is valid; None for a signature in a header.
    """

    access_key: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str
    amz_date: str
    signed_at: datetime
    payload_hash: str
    expires_s: int | None

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


class StreamSigning(NamedTuple):
    """How the chunks of a signed body are signed. seed: the request's own signature."""

    key: bytes
    amz_date: str
    scope: str
    seed: str


def claims_of(request: S3Request) -> SignatureClaims | None:
    """Parse a request's signature; None if it has none.

    Raises S3Error: InvalidArgument (two mechanisms), InvalidRequest (an unsupported one),
    AuthorizationHeaderMalformed, AuthorizationQueryParametersError, AccessDenied.
    """
    authorization = request.header("authorization")
    in_query = request.has("X-Amz-Algorithm") or request.has("X-Amz-Signature")
    if authorization and in_query:
        raise S3Error(
            "InvalidArgument",
            "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature "
            "query string parameter or the Authorization header should be specified",
        )
    if in_query:
        return _from_query(request)
    if authorization and not authorization.startswith(ALGORITHM):
        raise S3Error(
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. Please use "
            "AWS4-HMAC-SHA256.",
        )
    return _from_header(request, authorization) if authorization else None


def verify(
    request: S3Request, claims: SignatureClaims, secret: str, *, now: datetime
) -> StreamSigning:
    """Check a signature with the key's secret.

    Raises S3Error: RequestTimeTooSkewed, AccessDenied (expired), SignatureDoesNotMatch.
    Source: AWS, "Signature Calculations for the Authorization Header", and "… Query Parameters".
    """
    key = signing_key(secret, claims.date, claims.region, claims.service)
    for uri in uris(request.raw_path):
        canonical = canonical_request(request, claims.signed_headers, claims.payload_hash, uri=uri)
        text = string_to_sign(canonical, amz_date=claims.amz_date, scope=claims.scope)
        if hmac.compare_digest(signature(key, text).encode(), claims.signature.encode()):
            _check_time(claims, now=now)
            return StreamSigning(key, claims.amz_date, claims.scope, claims.signature)
    # Like AWS, which checks the time first, report a wrong time rather than a wrong signature.
    _check_time(claims, now=now)
    raise S3Error("SignatureDoesNotMatch", extra={"AWSAccessKeyId": claims.access_key[:128]})


def _check_time(claims: SignatureClaims, *, now: datetime) -> None:
    """Refuse a request that was signed too long ago, or in the future.

    Raises S3Error: RequestTimeTooSkewed, AccessDenied.
    """
    if claims.expires_s is None:
        if abs(now - claims.signed_at) > SKEW:
            raise S3Error(
                "RequestTimeTooSkewed",
                extra={
                    "RequestTime": claims.amz_date,
                    "ServerTime": _iso(now),
                    "MaxAllowedSkewMilliseconds": str(int(SKEW.total_seconds() * 1000)),
                },
            )
        return
    if claims.signed_at - now > SKEW:
        raise S3Error("AccessDenied", "Request is not yet valid")
    expires_at = claims.signed_at + timedelta(seconds=claims.expires_s)
    if now > expires_at:
        raise S3Error(
            "AccessDenied",
            "Request has expired",
            extra={
                "X-Amz-Expires": str(claims.expires_s),
                "Expires": _iso(expires_at),
                "ServerTime": _iso(now),
            },
        )


def _from_header(request: S3Request, authorization: str) -> SignatureClaims:
    signer, _, given = authorization.rpartition("Signature=")
    match = _SIGNATURE.fullmatch(given)
    if match is None:
        raise S3Error("AuthorizationHeaderMalformed")
    # A client's requests of one day have the same one.
    parse = _signer if len(signer) <= REMEMBERED_CHARS else _signer.__wrapped__
    (access_key, date, region, service), signed_headers = parse(signer)
    amz_date, signed_at = _date_from_headers(request)
    if amz_date[:8] != date:
        raise S3Error(
            "AuthorizationHeaderMalformed",
            f'The authorization header is malformed; Invalid credential date "{date}". This date '
            f'is not the same as X-Amz-Date: "{signed_at:%Y%m%d}".',
        )
    payload_hash = request.header("x-amz-content-sha256")
    if not payload_hash:
        raise S3Error(
            "InvalidRequest", "Missing required header for this request: x-amz-content-sha256"
        )
    return SignatureClaims(
        access_key=access_key,
        date=date,
        region=region,
        service=service,
        signed_headers=_checked(request, signed_headers),
        signature=match[1].lower(),
        amz_date=amz_date,
        signed_at=signed_at,
        payload_hash=payload_hash,
        expires_s=None,
    )


def _from_query(request: S3Request) -> SignatureClaims:
    if request.query("X-Amz-Algorithm") != ALGORITHM:
        raise S3Error(QUERY_ERROR, 'X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"')
    if any(not request.query(name) for name in _PARAMETERS):
        raise S3Error(
            QUERY_ERROR,
            "Query-string authentication version 4 requires the X-Amz-Algorithm, "
            "X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and "
            "X-Amz-Expires parameters.",
        )
    access_key, date, region, service = parsed_credential(
        request.query("X-Amz-Credential"), QUERY_ERROR
    )
    amz_date = request.query("X-Amz-Date")
    signed_at = parsed_date(amz_date)
    if signed_at is None:
        raise S3Error(
            QUERY_ERROR,
            "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"",
        )
    if amz_date[:8] != date:
        raise S3Error(
            QUERY_ERROR,
            f'Invalid credential date "{date}". This date is not the same as X-Amz-Date: '
            f'"{signed_at:%Y%m%d}".',
        )
    return SignatureClaims(
        access_key=access_key,
        date=date,
        region=region,
        service=service,
        signed_headers=_checked(request, _signed_headers(request.query("X-Amz-SignedHeaders"))),
        signature=request.query("X-Amz-Signature").lower(),
        amz_date=amz_date,
        signed_at=signed_at,
        payload_hash=request.header("x-amz-content-sha256") or UNSIGNED,
        expires_s=_expires(request.query("X-Amz-Expires")),
    )


def _expires(text: str) -> int:
    if not _SECONDS.fullmatch(text):
        raise S3Error(QUERY_ERROR, "X-Amz-Expires should be a number")
    seconds = int(text)
    if seconds < 0:
        raise S3Error(QUERY_ERROR, "X-Amz-Expires must be non-negative")
    if seconds > PRESIGNED_LIMIT_S:
        raise S3Error(
            QUERY_ERROR,
            "X-Amz-Expires must be less than a week (in seconds) that is, the given "
            f"X-Amz-Expires must be less than {PRESIGNED_LIMIT_S} seconds",
        )
    return seconds


def parsed_credential(text: str, code: str) -> tuple[str, str, str, str]:
    """Return access key, date, region and service. Raises S3Error with this code."""
    parts = text.rsplit("/", 4)
    is_complete = len(parts) == 5 and parts[4] == "aws4_request" and all(parts)
    if not is_complete or len(parts[2]) > MAX_REGION_CHARS:
        raise S3Error(
            code,
            "The authorization is malformed; the Credential is mal-formed; expecting "
            '"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".',
        )
    access_key, date, region, service, _ = parts
    if service != "s3":
        raise S3Error(
            code,
            f'The authorization is malformed; incorrect service "{service[:40]}". This '
            'endpoint belongs to "s3".',
        )
    return access_key, date, region, service


@lru_cache(maxsize=1024)
def _signer(text: str) -> tuple[tuple[str, str, str, str], SignedHeaders]:
    """Parse an Authorization header up to its signature. Raises S3Error."""
    match = _SIGNER.fullmatch(text)
    if match is None:
        raise S3Error("AuthorizationHeaderMalformed")
    return parsed_credential(match[1], "AuthorizationHeaderMalformed"), _signed_headers(match[2])


def _signed_headers(text: str) -> SignedHeaders:
    names = tuple(text.split(";")) if _SIGNED_HEADERS.fullmatch(text) else ()
    distinct = frozenset(names)
    return SignedHeaders(names, distinct, list(names) == sorted(distinct))


def _checked(request: S3Request, signed: SignedHeaders) -> tuple[str, ...]:
    """Return the names; Host and every ``x-amz-`` header of the request must be among them."""
    unsigned = [
        name
        for name in request.headers
        if name not in signed.all and (name == "host" or name.startswith("x-amz-"))
    ]
    if unsigned or not signed.is_sorted:
        raise S3Error(
            "AccessDenied",
            "There were headers present in the request which were not signed",
            extra={"HeadersNotSigned": ", ".join(sorted(unsigned))[:1000]},
        )
    return signed.names


def _date_from_headers(request: S3Request) -> tuple[str, datetime]:
    amz_date = request.header("x-amz-date")
    signed_at = parsed_date(amz_date) if amz_date else None
    if not amz_date:
        signed_at = parse_http_date(request.header("date"))
        amz_date = signed_at.strftime(AMZ_DATE) if signed_at is not None else ""
    if signed_at is None:
        raise S3Error(
            "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header"
        )
    return amz_date, signed_at


def parsed_date(text: str) -> datetime | None:
    """Return the moment of an ``X-Amz-Date``; None for anything else."""
    return _moment(text) if _AMZ_DATE.fullmatch(text) else None


@lru_cache(maxsize=1024)
def _moment(text: str) -> datetime | None:
    # Requests of one second have the same text, and strptime is slow.
    try:
        return datetime.strptime(text, AMZ_DATE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
