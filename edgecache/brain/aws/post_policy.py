"""What a posted form may do: its signature, and the policy that is signed.

A policy's conditions hold for the fields as they are stored, and every field must have one.
Source: AWS, "Creating a POST policy", "Browser-Based Uploads Using POST" (versions 4 and 2).
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.sigv4.canonical import ALGORITHM, signature, signing_key
from edgecache.brain.aws.sigv4.verification import (
    PRESIGNED_LIMIT_S,
    SKEW,
    parsed_credential,
    parsed_date,
)

# In the order in which they are missed.
_OF_VERSION_4: Final = ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature")
_OF_VERSION_2: Final = ("awsaccesskeyid", "signature")
POLICY: Final = "policy"
IGNORED: Final = "x-ignore-"
# Fields of which no policy speaks, as they sign it.
_UNCONDITIONAL: Final = frozenset((POLICY, "signature", "x-amz-signature", "awsaccesskeyid"))
OF_SIGNATURES: Final = frozenset((POLICY, *_OF_VERSION_4, *_OF_VERSION_2))
_SIZE: Final = "content-length-range"
_LIMIT: Final = timedelta(seconds=PRESIGNED_LIMIT_S)
_EXPIRATION: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)
_DIGITS: Final = re.compile(r"\d{1,19}", re.ASCII)


class FormClaim(NamedTuple):
    """Access key and signature of a form. signed_at: None in version 2, which has no date."""

    access_key: str
    policy: str
    signature: str
    scope: tuple[str, str, str]
    signed_at: datetime | None


class Condition(NamedTuple):
    """One condition of a policy. is_prefix: the value may go on after the text."""

    field: str
    text: str
    is_prefix: bool


@dataclass(frozen=True, slots=True)
class PostPolicy:
    """A policy. sizes: bounds of the file, all of which hold."""

    expires_at: datetime
    conditions: tuple[Condition, ...]
    sizes: tuple[tuple[int, int], ...]

    def check(self, fields: Mapping[str, str], bucket: str, *, now: datetime) -> None:
        """Raise S3Error AccessDenied unless the form does what the policy allows."""
        if now > self.expires_at:
            raise _denied("Policy expired.")
        if fields.get("bucket", bucket) != bucket:
            raise _denied("The field bucket names another bucket.")
        values = {**fields, "bucket": bucket}
        for each in self.conditions:
            if each.field not in values or not _holds(each, values[each.field]):
                shown = ["starts-with" if each.is_prefix else "eq", f"${each.field}", each.text]
                raise _denied(f"Policy Condition failed: {orjson.dumps(shown).decode()[:500]}")
        covered = {each.field for each in self.conditions} | _UNCONDITIONAL
        extra = [name for name in values if name not in covered and not name.startswith(IGNORED)]
        if extra:
            raise _denied(f"Extra input fields: {', '.join(extra)[:500]}")


def claimed_key(fields: Mapping[str, str]) -> str:
    """Return the id of the access key that a form names, not yet verified; '' without one."""
    credential = fields.get("x-amz-credential", "").partition("/")[0]
    return credential or fields.get("awsaccesskeyid", "")


def claim_of(fields: Mapping[str, str]) -> FormClaim | None:
    """Parse a form's signature; None for an anonymous form.

    Raises S3Error InvalidArgument: two mechanisms, or one of which a field is missing or malformed.
    """
    is_v4 = any(name in fields for name in _OF_VERSION_4)
    is_v2 = any(name in fields for name in _OF_VERSION_2)
    if not is_v4 and not is_v2 and POLICY not in fields:
        return None
    if is_v4 and is_v2:
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed in a form.")
    for name in (POLICY, *(_OF_VERSION_2 if is_v2 else _OF_VERSION_4)):
        if not fields.get(name):
            raise missing(name)
    if is_v2:
        key, given = (fields[name] for name in _OF_VERSION_2)
        return FormClaim(key, fields[POLICY], given, ("", "", ""), None)
    if fields["x-amz-algorithm"] != ALGORITHM:
        raise S3Error("InvalidArgument", f'x-amz-algorithm only supports "{ALGORITHM}"')
    key, *scope = parsed_credential(fields["x-amz-credential"], "InvalidArgument")
    signed_at = parsed_date(fields["x-amz-date"])
    if signed_at is None or fields["x-amz-date"][:8] != scope[0]:
        raise S3Error("InvalidArgument", "x-amz-date is no date, or not that of the credential.")
    date, region, service = scope
    given = fields["x-amz-signature"].lower()
    return FormClaim(key, fields[POLICY], given, (date, region, service), signed_at)


def missing(name: str) -> S3Error:
    """Return the error for a form without a field that it needs."""
    return S3Error(
        "InvalidArgument",
        f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the "
        "order of the fields.",
        extra={"ArgumentName": name},
    )


def verify(claim: FormClaim, secret: str, *, now: datetime) -> PostPolicy:
    """Check a form's signature with the key's secret, and return its policy.

    Raises S3Error: SignatureDoesNotMatch, AccessDenied (too long ago), InvalidPolicyDocument.
    """
    if claim.signed_at is not None:
        made = signature(signing_key(secret, *claim.scope), claim.policy)
    else:
        digest = hmac.digest(secret.encode(), claim.policy.encode(), "sha1")
        made = base64.b64encode(digest).decode()
    if not hmac.compare_digest(made.encode(), claim.signature.encode()):
        raise S3Error("SignatureDoesNotMatch", extra={"AWSAccessKeyId": claim.access_key[:128]})
    policy = _parsed(claim.policy)
    # Version 2 says when a form ends only.
    begins = claim.signed_at or policy.expires_at - _LIMIT
    if begins - now > SKEW:
        raise S3Error("AccessDenied", "Request is not yet valid")
    if now - begins > _LIMIT:
        raise S3Error("AccessDenied", "Request has expired")
    return policy


def _parsed(text: str) -> PostPolicy:
    try:
        found = orjson.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise _invalid("it is not JSON in base64.") from None
    if not isinstance(found, dict) or set(found) != {"expiration", "conditions"}:
        raise _invalid("it has expiration and conditions, and nothing else.")
    rows = found["conditions"]
    if not isinstance(rows, list) or not rows:
        raise _invalid("its conditions are a list.")
    sizes = tuple(_range(row[1:]) for row in rows if _is_range(row))
    conditions = tuple(_condition(row) for row in rows if not _is_range(row))
    return PostPolicy(_expiration(found["expiration"]), conditions, sizes)


def _expiration(text: Any) -> datetime:
    try:
        if isinstance(text, str) and _EXPIRATION.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise _invalid("its expiration is a date as 2026-01-31T12:00:00.000Z.")


def _condition(row: Any) -> Condition:
    if isinstance(row, dict) and len(row) == 1:
        [(name, text)] = row.items()
        operator = "eq"
    elif isinstance(row, list) and len(row) == 3 and str(row[1]).startswith("$"):
        operator, name, text = str(row[0]).lower(), str(row[1])[1:], row[2]
    else:
        raise _invalid("a condition has one field with its value, or three values.")
    if operator not in {"eq", "starts-with"} or not isinstance(text, str):
        raise _invalid("a condition is eq or starts-with, with a text.")
    return Condition(name.lower(), text, operator == "starts-with")


def _is_range(row: Any) -> bool:
    return isinstance(row, list) and bool(row) and str(row[0]).lower() == _SIZE


def _range(values: Iterable[Any]) -> tuple[int, int]:
    # Numbers, or texts as some clients write them.
    found = [str(value) for value in values]
    if len(found) != 2 or not all(_DIGITS.fullmatch(text) for text in found):
        raise _invalid(f"{_SIZE} has two numbers.")
    return int(found[0]), int(found[1])


def _holds(condition: Condition, value: str) -> bool:
    if not condition.is_prefix:
        return value == condition.text
    # AWS reads commas in it as a list of types, each of which must fit.
    values = re.split(", *", value) if condition.field == "content-type" else [value]
    return all(each.startswith(condition.text) for each in values)


def _denied(why: str) -> S3Error:
    return S3Error("AccessDenied", f"Invalid according to Policy: {why}")


def _invalid(why: str) -> S3Error:
    return S3Error("InvalidPolicyDocument", f"Invalid Policy: {why}")
