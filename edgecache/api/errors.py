"""What the cache's side of the platform refuses."""

from common.errors import Conflict, EngineError, NotFound, Unavailable
from common.openapi import shapes


class CacheUnavailable(Unavailable):
    """The cache's brain does not answer; everything else works."""

    code = "cache_unavailable"
    title = "The edge cache is unavailable for the moment."
    # The fields of ``GET /v1/cache/status``, which are in the problem, too.
    members = {
        "brain_healthy": shapes.BOOLEAN,
        "total_nodes": shapes.COUNT,
        "online_nodes": shapes.COUNT,
        "total_cache_bytes": shapes.COUNT,
        "used_cache_bytes": shapes.COUNT,
        "hit_ratio": shapes.NUMBER,
    }


class NodeNotFound(NotFound):
    """No such node, or it is not yours to see or to change."""

    code = "node_not_found"
    title = "There is no such node."


class NodeEndpointTaken(Conflict):
    """A node with this endpoint is registered already."""

    code = "endpoint_taken"
    title = "Another node has this endpoint."


class BucketNotFound(NotFound):
    """No bucket of the environment has this name."""

    code = "bucket_not_found"
    title = "There is no such bucket."


class BucketTaken(Conflict):
    """The environment has a bucket of this name already."""

    code = "bucket_taken"
    title = "Another bucket has this name."


class BucketNotEmpty(Conflict):
    """A bucket that still holds objects is not deleted."""

    code = "bucket_not_empty"
    title = "The bucket still holds objects."


class ObjectNotFound(NotFound):
    """The bucket has no object of this key."""

    code = "object_not_found"
    title = "There is no such object."


class OriginReadOnly(Conflict):
    """Objects of this bucket come from an HTTP origin, which can only be read, key by key."""

    code = "origin_read_only"
    title = "The bucket's origin cannot do this."


class OriginFailed(EngineError):
    """The bucket's origin refused, failed or did not answer; ``detail`` says which."""

    code = "origin_failed"
    title = "The bucket's origin failed."


class HostNotFound(NotFound):
    """The bucket has no such host."""

    code = "host_not_found"
    title = "There is no such host."


class HostTaken(Conflict):
    """Another bucket has the host, and its TXT record is still in the host's DNS."""

    code = "host_taken"
    title = "Another bucket has this host."


class HostNotProved(Conflict):
    """The TXT record is missing or has another value; ``record`` is the one to create."""

    code = "host_not_proved"
    title = "The record was not found."
    members = {"record": shapes.DNS_RECORD}


class AccessKeyNotFound(NotFound):
    """No access key of the environment has this id."""

    code = "access_key_not_found"
    title = "There is no such access key."


class OriginNotFound(NotFound):
    """No origin of the environment has this name."""

    code = "origin_not_found"
    title = "There is no such origin."


class OriginTaken(Conflict):
    """The environment has an origin of this name already."""

    code = "origin_taken"
    title = "Another origin has this name."


class OriginInUse(Conflict):
    """Buckets still take their objects from it."""

    code = "origin_in_use"
    title = "Buckets still use this origin."


class CacheLimitReached(Conflict):
    """The environment has as many of these as it may have, or the node's state forbids it."""

    code = "cache_limit_reached"
    title = "This is not possible now."
