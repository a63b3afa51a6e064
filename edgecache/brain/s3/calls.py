"""What an operation is given, and what it gives back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from edgecache.brain.delivery.delivery import Tenant
from edgecache.brain.s3.auth.sigv4.verification import Seal
from edgecache.brain.s3.errors import S3Error
from edgecache.brain.s3.parts import S3Parts
from edgecache.brain.s3.requests import S3Request, is_bucket_name
from edgecache.brain.s3.xml import CONTENT_TYPE
from edgecache.brain.values import BucketInfo
from edgecache.http.exchange import Exchange


@dataclass(frozen=True, slots=True)
class Identity:
    """Whoever signed. payload_hash: what the signature says of the body."""

    access_key: str
    tenant: Tenant
    can_write: bool
    payload_hash: str
    seal: Seal


@dataclass(slots=True)
class Call:
    """One request, read and authenticated. identity: None is anybody.

    bucket_id, is_hit: for the request's line in the log, once they are known.
    """

    parts: S3Parts
    request: S3Request
    exchange: Exchange
    identity: Identity | None
    bucket_id: int | None = None
    is_hit: bool | None = None

    @property
    def tenant(self) -> Tenant:
        """Give the caller's environment.

        Raises S3Error AccessDenied for anybody.
        """
        if self.identity is None:
            raise S3Error("AccessDenied")
        return self.identity.tenant

    def require_write(self) -> None:
        """Refuse a key of read access.

        Raises S3Error AccessDenied.
        """
        if self.identity is None or not self.identity.can_write:
            raise S3Error("AccessDenied")

    async def bucket(self, name: str = "") -> BucketInfo:
        """Give the request's bucket, or another one of the caller's environment.

        A stranger's bucket is absent. Raises S3Error NoSuchBucket, AccessDenied.
        """
        wanted = name or self.request.bucket
        self._check_owner(self.tenant)
        found = await self.parts.directory.bucket(self.tenant, wanted)
        if found is None:
            code = "NoSuchBucket" if is_bucket_name(wanted) else "InvalidBucketName"
            raise S3Error(code, extra={"BucketName": wanted[:255]})
        if not name:
            self.bucket_id = found.id
        return found

    async def readable_bucket(self) -> BucketInfo:
        """Give the bucket to read an object from; anybody may, of a public one by its public name.

        Raises S3Error NoSuchBucket, AccessDenied.
        """
        if self.identity is not None:
            return await self.bucket()
        found = await self.parts.directory.bucket_by_public_name(self.request.bucket)
        if found is None or not found.is_public:
            raise S3Error("AccessDenied")
        self._check_owner(found.tenant)
        self.bucket_id = found.id
        return found

    def _check_owner(self, tenant: Tenant) -> None:
        owner = self.request.header("x-amz-expected-bucket-owner")
        if owner and owner != f"{tenant.organization_id:012d}":
            raise S3Error("AccessDenied")


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers, and a body of XML or none."""

    status: int = 200
    headers: Sequence[tuple[str, str]] = field(default=())
    body: bytes = b""
    content_type: str = CONTENT_TYPE
