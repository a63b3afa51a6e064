"""What the listings have in common: their parameters, their lines, their encoding."""

import base64
import hashlib
from binascii import Error as Base64Error
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.s3.auth.sigv4.canonical import encoded
from edgecache.brain.s3.calls import Call
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.requests import S3Request
from edgecache.brain.s3.xml import Node
from edgecache.brain.values import Listed, Listing

MAX_KEYS: Final = 1000
STORAGE_CLASS: Final = "STANDARD"


@dataclass(frozen=True, slots=True)
class Asked:
    """A listing's common parameters. encodes: names in the answer are URL-encoded."""

    prefix: str
    delimiter: str
    max_keys: int
    encodes: bool

    def name(self, text: str) -> str:
        """Give a name as the answer carries it."""
        return encoded(text, safe="/") if self.encodes else text

    def nodes(self) -> list[Node | None]:
        """Give the elements that repeat what was asked."""
        return [
            ("Prefix", self.name(self.prefix)),
            ("Delimiter", self.name(self.delimiter)) if self.delimiter else None,
            ("MaxKeys", self.max_keys),
            ("EncodingType", "url") if self.encodes else None,
        ]


def asked(request: S3Request, *, limit_name: str = "max-keys") -> Asked:
    """Read the common parameters.

    Raises S3Error InvalidArgument.
    """
    encoding = request.query("encoding-type")
    if encoding not in {"", "url"}:
        raise S3Error(
            "InvalidArgument",
            "Invalid Encoding Method specified in Request",
            extra={"ArgumentName": "encoding-type", "ArgumentValue": encoding[:100]},
        )
    return Asked(
        prefix=request.query("prefix"),
        delimiter=request.query("delimiter"),
        max_keys=request.integer(limit_name, MAX_KEYS, maximum=MAX_KEYS),
        encodes=bool(encoding),
    )


async def page(call: Call, what: Asked, *, start_after: str) -> Listing:
    """Give a page of the request's bucket.

    Raises S3Error NoSuchBucket; BrainError.
    """
    bucket = await call.bucket()
    if what.max_keys == 0:
        return Listing((), (), None)
    return await call.parts.fills.list(
        bucket, what.prefix, start_after, what.delimiter, what.max_keys
    )


def contents(what: Asked, row: Listed, *, owner: str = "", name: str = "Contents") -> Node:
    """Give an object's line."""
    children: list[Node | None] = [
        ("Key", what.name(row.key)),
        ("LastModified", iso(row.last_modified)),
        ("ETag", f'"{row.etag}"'),
        ("Size", row.size),
        ("Owner", [("ID", owner)]) if owner else None,
        ("StorageClass", STORAGE_CLASS),
    ]
    return name, children


def common_prefixes(what: Asked, prefixes: tuple[str, ...]) -> list[Node]:
    """Give the groups' lines."""
    return [("CommonPrefixes", [("Prefix", what.name(prefix))]) for prefix in prefixes]


def token_of(text: str) -> str:
    """Give a continuation token, which is nobody's business but ours."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def of_token(token: str) -> str:
    """Read a continuation token.

    Raises S3Error InvalidArgument.
    """
    try:
        text = base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (Base64Error, ValueError):
        text = "\0"
    if "\0" in text:
        raise S3Error(
            "InvalidArgument",
            "The continuation token provided is incorrect",
            extra={"ArgumentName": "continuation-token"},
        )
    return text


def owner_id(tenant: Tenant) -> str:
    """Give the 64 digits that name an environment as an owner; they tell nothing else."""
    text = f"zonal:{tenant.organization_id}:{tenant.environment_pk}"
    return hashlib.sha256(text.encode()).hexdigest()


def iso(moment: datetime) -> str:
    """Give a time as S3's XML writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
