"""What an operation is given, and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from edgecache.brain.aws.errors import S3Error
from edgecache.brain.aws.requests import S3Request
from edgecache.brain.aws.sigv4.verification import StreamSigning
from edgecache.brain.aws.xml import CONTENT_TYPE
from edgecache.brain.core.errors import OriginError, OriginFailed, Overloaded
from edgecache.brain.core.share_key import SHARE_KEY, use_share_of_bucket
from edgecache.brain.core.values import BucketInfo, EnvironmentKey, is_bucket_name
from edgecache.brain.origins.connections import is_loop
from edgecache.brain.s3.dependencies import S3Dependencies
from edgecache.http.exchange import Exchange
from edgecache.runtime.fair_shares import ShareKey

# Statuses of an origin's errors that its owner should know.
ORIGIN_FAILURES: Final = frozenset({502, 504})


class RequestSigner(NamedTuple):
    """The access key that signed a request.

    payload_hash: what the signature says of the body. stream_signing: for bodies in signed chunks.
    """

    access_key: str
    tenant: EnvironmentKey
    can_write: bool
    payload_hash: str
    stream_signing: StreamSigning


@dataclass(slots=True)
class RequestContext:
    """One request, parsed and authenticated.

    identity: None for an anonymous request.
    is_hit: for the request's line in the log; None while unknown.
    charged, share_key: the first bucket, and who is charged for the running request.
    xml: who is charged for the memory of its XML, and how much.
    """

    dependencies: S3Dependencies
    request: S3Request
    exchange: Exchange
    identity: RequestSigner | None
    is_hit: bool | None = None
    charged: BucketInfo | None = None
    share_key: ShareKey | None = None
    xml: tuple[ShareKey, int] | None = None

    def close(self) -> None:
        """Release the permit among the running requests, and memory."""
        if self.xml is not None:
            self.dependencies.data_directory.buffers.shares.give_back(*self.xml)
        if self.share_key is not None:
            self.dependencies.running.give_back(self.share_key)

    def reserve_xml(self, size: int) -> None:
        """Reserve memory for a body of XML until the request ends. Raises Overloaded."""
        held = (SHARE_KEY.get()[:2], size)
        if not self.dependencies.data_directory.buffers.shares.try_take(*held):
            raise Overloaded
        self.xml = held

    def note_failure(self, exc: OriginError) -> None:
        """Count an error of the bucket's origin for its owner, and log its cause."""
        if self.charged is not None and exc.status in ORIGIN_FAILURES:
            self.exchange.cause = exc.cause
            self.dependencies.meters.record_failure(self.charged.id, exc.cause)

    def bucket_of_log(self) -> BucketInfo | None:
        """Return the bucket whose access log the request belongs to, if it has one.

        A signed request that is refused before its bucket is read belongs to it, too, if the bucket
        is in memory.
        """
        bucket = self.charged
        if bucket is None and self.identity is not None:
            name = (self.identity.tenant, self.request.bucket)
            bucket = self.dependencies.directory.known_bucket(name)
        return bucket if bucket is not None and bucket.log_bucket else None

    def count_empty(self, bucket: BucketInfo, *, is_hit: bool) -> None:
        """Count an answer about an object that has no bytes of it."""
        self.is_hit = is_hit
        self.dependencies.streamer.count_empty(
            bucket.tenant, bucket.id, self.exchange, is_hit=is_hit
        )

    @property
    def tenant(self) -> EnvironmentKey:
        """The caller's environment. Raises S3Error AccessDenied for an anonymous request."""
        if self.identity is None:
            raise S3Error("AccessDenied")
        return self.identity.tenant

    def require_write(self) -> None:
        """Raise S3Error AccessDenied unless the access key may write."""
        if self.identity is None or not self.identity.can_write:
            raise S3Error("AccessDenied")

    async def bucket(self, name: str = "") -> BucketInfo:
        """Return the request's bucket, or another one of the caller's environment.

        Another tenant's bucket counts as absent. Raises S3Error NoSuchBucket, AccessDenied.
        """
        wanted = name or self.request.bucket
        self.check_owner(self.tenant)
        bucket = await self.dependencies.directory.bucket(self.tenant, wanted)
        if bucket is None:
            code = "NoSuchBucket" if is_bucket_name(wanted) else "InvalidBucketName"
            raise S3Error(code, extra={"BucketName": wanted[:255]})
        self._charge(bucket)
        return bucket

    async def writable_bucket(self) -> BucketInfo:
        """Return the request's bucket, for an access key that may write.

        Raises S3Error AccessDenied, NoSuchBucket.
        """
        self.require_write()
        return await self.bucket()

    async def readable_bucket(self) -> BucketInfo:
        """Return the bucket to read an object from; for an anonymous request, a public one.

        Anonymous requests name a bucket by its public name. Raises S3Error NoSuchBucket,
        AccessDenied.
        """
        if self.identity is not None:
            return await self.bucket()
        bucket = await self.dependencies.directory.bucket_by_public_name(self.request.bucket)
        if bucket is None or not bucket.is_public:
            raise S3Error("AccessDenied")
        self.check_owner(bucket.tenant)
        self._charge(bucket, client=self.request.client)
        return bucket

    def _charge(self, bucket: BucketInfo, *, client: str = "") -> None:
        """Charge the request to the first bucket that it names.

        Raises Overloaded, OriginFailed for a loop.
        """
        if self.share_key is None:
            self.charged = bucket
            share_key = use_share_of_bucket(bucket, client)
            if not self.dependencies.running.try_take(share_key):
                raise Overloaded
            self.share_key = share_key
        if bucket.origin_id is not None and is_loop(self.request.headers):
            raise OriginFailed("The origin leads to this bucket.", cause="loop")

    def check_owner(
        self, tenant: EnvironmentKey, header: str = "x-amz-expected-bucket-owner"
    ) -> None:
        """Raise S3Error AccessDenied if a header expects another owner of the bucket."""
        owner = self.request.header(header)
        if owner and owner != f"{tenant.organization_id:012d}":
            raise S3Error("AccessDenied")


@dataclass(frozen=True, slots=True)
class S3Response:
    """Status, headers, and a body of XML or none."""

    status: int = 200
    headers: Sequence[tuple[str, str]] = field(default=())
    body: bytes = b""
    content_type: str = CONTENT_TYPE
