"""Whose fair share the work of a request counts against, in the pools that requests share."""

from contextvars import ContextVar
from typing import Final

from edgecache.brain.values import BucketInfo
from edgecache.http.addresses import network_of
from edgecache.http.shares import Path

# Set for the task of each request, and inherited by what it starts.
PLATFORM: Final[Path] = ("platform",)
PAYER: Final[ContextVar[Path]] = ContextVar("payer", default=PLATFORM)


def charge_platform() -> None:
    """Charge the brain itself, for what it does for several organizations at once."""
    PAYER.set(PLATFORM)


def charge_unknown_client(address: str) -> None:
    """Charge a client whose organization is not known yet."""
    PAYER.set(("unknown", network_of(address)))


def charge_organization(organization_id: int) -> None:
    """Charge an organization."""
    PAYER.set((organization_id,))


def charge_bucket(bucket: BucketInfo, client: str = "") -> Path:
    """Charge a bucket, and return who pays. client: the address of an anonymous client."""
    path: Path = (bucket.tenant.organization_id, bucket.id)
    if client:
        path = (*path, network_of(client))
    PAYER.set(path)
    return path
