"""The brain's schema. Its code reads and writes these tables with SQL (``brain.database``).

Ids of organizations and environments are plain numbers: the brain may have a database of its own.
Nothing outside ``edgecache.brain`` reads these tables.

A foreign key has no index of its own where another one begins with it: a write would pay for both,
and a plan that takes the shorter one reads a whole bucket for one key.
"""

from edgecache.brain.models.audits import AuditPlan, Look, QuarantineEvent
from edgecache.brain.models.buckets import AccessKey, Bucket, Host, Origin
from edgecache.brain.models.nodes import (
    BrainInstance,
    Location,
    Node,
    NodeJob,
    OperatorNetwork,
    OrganizationService,
)
from edgecache.brain.models.objects import (
    Blob,
    CachedObject,
    FillLease,
    PendingWrite,
    PurgeRecord,
    Release,
    StoredObject,
    Upload,
    UploadPart,
)
from edgecache.brain.models.stores import DiscardedBytes, Store, StoredBlob
from edgecache.brain.models.usage import (
    Measurement,
    Receipt,
    StorageHour,
    UsageBatch,
    UsageCounter,
    UsageLine,
)

__all__ = [
    "AccessKey",
    "AuditPlan",
    "Blob",
    "BrainInstance",
    "Bucket",
    "CachedObject",
    "DiscardedBytes",
    "FillLease",
    "Host",
    "Location",
    "Look",
    "Measurement",
    "Node",
    "NodeJob",
    "OperatorNetwork",
    "OrganizationService",
    "Origin",
    "PendingWrite",
    "PurgeRecord",
    "QuarantineEvent",
    "Receipt",
    "Release",
    "StorageHour",
    "Store",
    "StoredBlob",
    "StoredObject",
    "Upload",
    "UploadPart",
    "UsageBatch",
    "UsageCounter",
    "UsageLine",
]
