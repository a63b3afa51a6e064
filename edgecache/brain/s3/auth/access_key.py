"""An access key, whether it has a row or is the platform's own."""

from dataclasses import dataclass, field

from edgecache.brain.delivery.delivery import Tenant


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An access key. secret: in clear text, as signatures need it."""

    id: str
    tenant: Tenant
    secret: str = field(repr=False)
    can_write: bool
