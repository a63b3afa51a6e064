"""The errors of the brain's parts; each API renders them in its own format.

BrainError
├── Unavailable            503
│   ├── DatabaseUnavailable
│   │   └── DatabaseBusy
│   ├── Overloaded
│   ├── StorageFull
│   └── StoreUnavailable
├── NoSuchBucket           404
├── NoSuchOrigin           404
├── NoSuchHost             404
├── BucketExists           409
├── OriginExists           409
├── HostTaken              409
├── BucketNotEmpty         409
├── BucketChanged          409  its options are not those that were read
├── OriginOptionsChanged   409  they are not those that were read
├── LimitReached           409  the environment has the maximum number of these
├── KeyRefused             400  an invalid key (NUL, too long, not representable at its origin)
│   └── KeyTooLong              over a limit of its length
├── LinkRefused            403  a signed link that is expired, revoked or was changed
├── PreconditionFailed     412
├── UploadMissing          404  a multipart upload that was completed or aborted
├── UploadBusy             409  one that is being completed at the bucket's origin
├── TooManyParts           403  an organization's unfinished uploads have reached their limit
├── ServiceStopped         402  the bytes are on other operators' nodes, and there are no credits
├── Invalid                400  with errors[]: wrong fields of a bucket or an origin
├── InUse                  409  an origin that buckets use
├── NotFound               404  absent, or another tenant's
│   └── NodeNotFound
├── EndpointTaken          409
├── StateConflict          409  the request does not fit the resource's state
├── VariantChanged              within the brain only: ask again for another variant
└── OriginError            502
    ├── OriginMissing      404  the origin has no such object
    │   └── TargetMissing       nothing is at a write's own key, whose ETag If-Match names
    ├── OriginRangeRefused 416  the range begins after the last byte
    ├── OriginDenied       502  it refuses the bucket's credentials
    ├── OriginForbidden    502  the egress guard refuses its address
    ├── OriginReadOnly     405  it takes no writes (HTTP origins)
    ├── OriginTimeout      504  it did not answer, or stalled
    ├── OriginFailed       502  any other error: a body cut short, a wrong Content-Length
    │   └── NotKept             its bytes are passed on, not kept
    ├── OriginChanged      502  it no longer has the bytes with the requested hash
    └── StoreMissing       502  the managed store has lost bytes
        └── PartMissing         of a part of a multipart upload
"""

from typing import ClassVar, Self

from edgecache.protocol.fields import FieldError


class BrainError(Exception):
    """An error with a stable code and an HTTP status.

    detail: a sentence for the caller; it never holds SQL, an address of ours or a tenant's secret.
    cause: the word for it in Cache-Status and in logs (docs/cache.md).
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    sentence: ClassVar[str] = "Something went wrong."

    def __init__(self, detail: str = "", *, cause: str = "") -> None:
        super().__init__(detail or self.sentence)
        self.detail = detail or self.sentence
        self.cause = cause or self.code.replace("_", "-")

    def copy(self) -> Self:
        """Return a copy for another waiter: each raise adds to the traceback."""
        # Without the constructor, which takes other arguments in some subclasses.
        copied = type(self).__new__(type(self), *self.args)
        copied.__dict__.update(self.__dict__)
        return copied


class Unavailable(BrainError):
    """Temporary; a change may or may not have happened."""

    code = "unavailable"
    status = 503
    sentence = "The cache cannot answer right now; try again."


class DatabaseUnavailable(Unavailable):
    """PostgreSQL does not answer, or takes no writes at the moment."""

    code = "database_away"


class DatabaseBusy(DatabaseUnavailable):
    """The caller's share of the connections to PostgreSQL was in use for too long."""

    code = "database_busy"
    sentence = "The cache is busy; slow down."


class Overloaded(Unavailable):
    """The caller's share of a pool is in use."""

    code = "overloaded"
    sentence = "The cache is busy; slow down."


class StorageFull(Unavailable):
    """No room on the brain's disk, or within its budget.

    pool: ``disk``, ``staging`` (the brain's budget for unfinished bodies and parts of uploads) or
    ``organization`` (the caller's share of that).
    limit_bytes: the budget, 0 if the disk itself is full.
    wanted_bytes: the size of the body, if known.
    """

    code = "storage_full"
    sentence = "The cache's disk is full; nothing was stored."

    def __init__(
        self,
        detail: str = "",
        *,
        pool: str = "disk",
        limit_bytes: int = 0,
        wanted_bytes: int = 0,
    ) -> None:
        if limit_bytes and not detail:
            whose = "Your organization's share" if pool == "organization" else "All"
            detail = (
                f"{whose} of the {limit_bytes:,} bytes that the cache has for unfinished bodies "
                "and parts of uploads (ZBRAIN_STAGING_MIB) is in use; nothing was "
                "stored. Try again later."
            )
        super().__init__(detail)
        self.pool = pool
        self.limit_bytes = limit_bytes
        self.wanted_bytes = wanted_bytes


class StoreUnavailable(Unavailable):
    """The managed store does not answer, or refuses."""

    code = "store_away"
    sentence = "The store of this platform's objects does not answer; try again."


class NoSuchBucket(BrainError):
    """Absent, or another tenant's."""

    code = "no_such_bucket"
    status = 404
    sentence = "There is no such bucket."


class NoSuchOrigin(BrainError):
    """Absent, or another tenant's."""

    code = "no_such_origin"
    status = 404
    sentence = "There is no such origin."


class BucketExists(BrainError):
    """The environment has a bucket of this name."""

    code = "bucket_exists"
    status = 409
    sentence = "A bucket of this name exists."


class LimitReached(BrainError):
    """The environment has as many of these as it may have."""

    code = "cache_limit_reached"
    status = 409
    sentence = "The environment has as many of these as it may have."


class OriginExists(BrainError):
    """The environment has an origin of this name."""

    code = "origin_exists"
    status = 409
    sentence = "An origin of this name exists."


class NoSuchHost(BrainError):
    """Absent, or another bucket's."""

    code = "host_not_found"
    status = 404
    sentence = "There is no such host."


class HostTaken(BrainError):
    """Another bucket has it, and its TXT record still exists."""

    code = "host_taken"
    status = 409
    sentence = "Another bucket has this host, and its record is still there."


class BucketNotEmpty(BrainError):
    """It holds objects."""

    code = "bucket_not_empty"
    status = 409
    sentence = "The bucket is not empty."


class BucketChanged(BrainError):
    """Its options are not those that the caller has read."""

    code = "bucket_changed"
    status = 409
    sentence = "The bucket was changed since it was read."


class OriginOptionsChanged(BrainError):
    """Its options are not those that the caller has read."""

    code = "origin_options_changed"
    status = 409
    sentence = "The origin was changed since it was read."


class KeyRefused(BrainError):
    """Not a key, or none that this bucket's origin can hold."""

    code = "key_refused"
    status = 400
    sentence = "An object's key has 1 to 1,024 bytes of UTF-8, and no NUL."


class LinkRefused(BrainError):
    """A link that the platform did not sign so, or whose time is over."""

    code = "link_refused"
    status = 403
    sentence = "The link does not open this, or is not valid any more."


class KeyTooLong(KeyRefused):
    """A key, or a URL's query, over a limit."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail, cause="url-too-long")


class PreconditionFailed(BrainError):
    """If-Match or If-None-Match does not hold."""

    code = "precondition_failed"
    status = 412
    sentence = "The object is not as the condition says."


class UploadMissing(BrainError):
    """A multipart upload that was completed or aborted."""

    code = "no_such_upload"
    status = 404


class UploadBusy(BrainError):
    """A multipart upload that is being completed at the bucket's origin."""

    code = "upload_busy"
    status = 409


class TooManyParts(BrainError):
    """Parts of an organization's unfinished uploads take all that they may in the store."""

    code = "too_many_parts"
    status = 403
    sentence = "The parts of your organization's unfinished uploads take all the room they may."

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"The parts of your organization's unfinished uploads may take {limit_bytes:,} bytes "
            "together. Complete or abort some of these uploads."
        )
        self.limit_bytes = limit_bytes


class ServiceStopped(BrainError):
    """The bytes are on other operators' nodes only, and their organization cannot pay for reads."""

    code = "service_stopped"
    status = 402
    sentence = (
        "The bucket's organization has no credits left, or has reached its spend cap: nodes of "
        "other operators do not serve its objects, and its origin does not answer."
    )


class Invalid(BrainError):
    """Invalid fields."""

    code = "invalid"
    status = 400
    sentence = "Some fields are not right."

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__()
        self.errors = errors


class InUse(BrainError):
    """Other rows refer to it."""

    code = "in_use"
    status = 409
    sentence = "It is still in use."


class NotFound(BrainError):
    """No such thing that the caller may see."""

    code = "not_found"
    status = 404
    sentence = "There is nothing at this path."


class NodeNotFound(NotFound):
    """The node does not exist."""

    code = "node_not_found"
    sentence = "There is no such node."


class EndpointTaken(BrainError):
    """A node has this endpoint already."""

    code = "endpoint_taken"
    status = 409
    sentence = "A node with this endpoint is registered already."


class StateConflict(BrainError):
    """The request does not fit the resource's state."""

    code = "not_possible"
    status = 409
    sentence = "That is not possible in its present state."


class VariantChanged(BrainError):
    """A fetch was named before it was known what the response varies on.

    Another brain's response says it. Requests that wait for the fetch start again with it.
    """


class OriginError(BrainError):
    """The origin's fault, or that of its configuration.

    is_revalidation: a stored response was to be revalidated.
    """

    is_revalidation = False

    code = "origin_failed"
    status = 502
    sentence = "The origin failed."


class OriginMissing(OriginError):
    """The origin has no such object.

    is_cacheable: by the negative cache. is_remembered: it is the negative cache's answer.
    """

    is_cacheable = True
    is_remembered = False

    code = "no_such_key"
    status = 404
    sentence = "There is no such object."


class TargetMissing(OriginMissing):
    """If-Match of a write finds nothing at the key that is written."""


class OriginRangeRefused(OriginError):
    """416: the range begins after the last byte."""

    sentence = "The range begins after the object's last byte."


class OriginDenied(OriginError):
    """The origin refuses the credentials that it was given."""

    code = "origin_denied"
    sentence = "The origin refuses the credentials configured for it."


class OriginForbidden(OriginError):
    """The egress guard refuses the origin's address."""

    code = "origin_forbidden"
    sentence = "The origin's address is not one that the cache connects to."


class OriginReadOnly(OriginError):
    """The origin takes no writes."""

    code = "origin_read_only"
    status = 405
    sentence = "The bucket's origin takes no writes."


class OriginTimeout(OriginError):
    """The origin did not answer in time, or stalled."""

    code = "origin_timeout"
    status = 504
    sentence = "The origin did not answer in time."


class OriginFailed(OriginError):
    """An error, a body cut short or a wrong Content-Length."""


class NotKept(OriginFailed):
    """The whole was asked for, and the fetch passes its bytes on to those who read them."""

    code = "not_kept"
    sentence = "The cache does not keep the object."


class OriginChanged(OriginError):
    """The origin has a newer version of what was asked for by its hash."""

    code = "origin_changed"
    sentence = "The object changed while it was read; ask again."


class StoreMissing(OriginError):
    """The managed store does not have bytes that it should have."""

    sentence = "The object's bytes are not where they should be."


class PartMissing(StoreMissing):
    """A part of an upload was deleted or altered. index: among the parts that were asked for."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index
