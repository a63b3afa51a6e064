"""What the listings have in common: their parameters, their elements, their encoding."""

import base64
import hashlib
from binascii import Error as Base64Error
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.canonical import encoded
from edgecache.brain.aws.xml import Node, long_document
from edgecache.brain.core.values import EnvironmentKey, KeyPage, ListedObject
from edgecache.brain.s3.context import RequestContext, S3Response

MAX_KEYS: Final = 1000
STORAGE_CLASS: Final = "STANDARD"


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """A listing's common parameters. encodes: names in the response are URL-encoded."""

    prefix: str
    delimiter: str
    max_keys: int
    encodes: bool

    def name(self, text: str) -> str:
        """Return a name as the response contains it."""
        return encoded(text, safe="/") if self.encodes else text

    def nodes(self) -> list[Node | None]:
        """Return the elements that repeat the parameters."""
        return [
            ("Prefix", self.name(self.prefix)),
            ("Delimiter", self.name(self.delimiter)) if self.delimiter else None,
            ("MaxKeys", self.max_keys),
            ("EncodingType", "url") if self.encodes else None,
        ]


def parse_query(request: S3Request, *, limit_name: str = "max-keys") -> ListingQuery:
    """Parse the common parameters. Raises S3Error InvalidArgument."""
    encoding = request.query("encoding-type")
    if encoding not in {"", "url"}:
        raise S3Error(
            "InvalidArgument",
            "Invalid Encoding Method specified in Request",
            extra={"ArgumentName": "encoding-type", "ArgumentValue": encoding[:100]},
        )
    return ListingQuery(
        prefix=request.query("prefix"),
        delimiter=request.query("delimiter"),
        max_keys=request.integer(limit_name, MAX_KEYS, maximum=MAX_KEYS),
        encodes=bool(encoding),
    )


async def list_page(context: RequestContext, query: ListingQuery, *, start_after: str) -> KeyPage:
    """Return a page of the request's bucket. Raises S3Error NoSuchBucket; BrainError."""
    bucket = await context.bucket()
    if query.max_keys == 0:
        return KeyPage((), (), None)
    return await context.dependencies.objects.list(
        bucket, query.prefix, start_after, query.delimiter, query.max_keys
    )


def object_node(query: ListingQuery, row: ListedObject, *, owner: str = "") -> Node:
    children: list[Node | None] = [
        ("Key", query.name(row.key)),
        ("LastModified", iso(row.last_modified)),
        ("ETag", f'"{row.etag}"'),
        ("Size", row.size),
        ("Owner", [("ID", owner)]) if owner else None,
        ("StorageClass", STORAGE_CLASS),
    ]
    return "Contents", children


async def page_of(
    name: str,
    nodes: Sequence[Node | None],
    query: ListingQuery,
    rows: Iterator[Node],
    prefixes: Iterable[str],
) -> S3Response:
    """Return a page: its own elements, its rows, and the groups that the delimiter makes."""
    groups = (("CommonPrefixes", [("Prefix", query.name(prefix))]) for prefix in prefixes)
    return S3Response(body=await long_document(name, nodes, chain(rows, groups)))


def encode_token(text: str) -> str:
    """Return a continuation token, which is opaque to clients."""
    return base64.urlsafe_b64encode(text.encode()).decode()


def decode_token(token: str) -> str:
    """Return the text that a continuation token was made of. Raises S3Error InvalidArgument."""
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


def owner_id(tenant: EnvironmentKey) -> str:
    """Return the 64 digits that identify an environment as an owner, without revealing it."""
    text = f"zonal:{tenant.organization_id}:{tenant.environment_pk}"
    return hashlib.sha256(text.encode()).hexdigest()


def iso(moment: datetime) -> str:
    """Return a time as S3's XML has it."""
    return f"{moment.astimezone(UTC).isoformat()[:19]}.000Z"
