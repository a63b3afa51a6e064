"""Whose fair share the work of a request counts against, in the pools that requests share."""

from contextvars import ContextVar
from typing import Final

from edgecache.brain.core.values import BucketInfo
from edgecache.http.addresses import network_of
from edgecache.runtime.fair_shares import ShareKey

# Set for the task of each request, and inherited by what it starts.
PLATFORM: Final[ShareKey] = ("platform",)
SHARE_KEY: Final[ContextVar[ShareKey]] = ContextVar("share_key", default=PLATFORM)


def use_share_of_platform() -> None:
    """Use the brain's own share, for what it does for several organizations together."""
    SHARE_KEY.set(PLATFORM)


def use_share_of_unknown_client(address: str) -> None:
    """Use the share of a client whose organization is not known yet."""
    SHARE_KEY.set(("unknown", network_of(address)))


def use_share_of_organization(organization_id: int) -> None:
    SHARE_KEY.set((organization_id,))


def use_share_of_bucket(bucket: BucketInfo, client: str = "") -> ShareKey:
    """Use the share of a bucket and return its key. client: the address of an anonymous client."""
    share_key: ShareKey = (bucket.tenant.organization_id, bucket.id)
    if client:
        share_key = (*share_key, network_of(client))
    SHARE_KEY.set(share_key)
    return share_key
