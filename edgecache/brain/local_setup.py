"""Set-up of a local brain: the rows of this machine's workers, and a first access key.

Runs in commands, beside Django's models; the brain itself reads these tables with SQL.
"""

import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from django.db import transaction

from common.crypto import encrypt
from common.machine.files import read_text, write_private
from edgecache.brain.access.access_keys import new_pair
from edgecache.brain.core.values import EnvironmentKey
from edgecache.brain.models.buckets import AccessKey, Bucket
from edgecache.brain.models.nodes import Node
from edgecache.local_nodes import LocalNode
from edgecache.protocol.credentials import secret_hash

BUCKET: Final = "development"
LABEL: Final = "made by bootstrap"


@dataclass(frozen=True, slots=True)
class ObjectApiCredentials:
    """Credentials of the object API for the development organization."""

    bucket: str
    access_key_id: str
    secret_access_key: str = field(repr=False)

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def register(node: LocalNode, *, endpoint: str = "") -> None:
    """Register a worker of this machine as an active node of the platform.

    endpoint: if it is not on the loopback address. A node that had been removed becomes active
    again: its folder exists here.
    """
    endpoint = endpoint or node.endpoint
    with transaction.atomic(using=Node.objects.db):
        # Another worker may have had this port before.
        others = Node.objects.filter(endpoint=endpoint, removed_at=None).exclude(pk=node.node_id)
        for other in others:
            other.endpoint = f"http://moved-{other.pk}.invalid"
            other.save(update_fields=["endpoint"])
        fields = {
            "organization_id": None,
            "endpoint": endpoint,
            "region": node.region,
            "capacity_bytes": node.capacity_bytes,
            "secret_hash": secret_hash(node.secret),
        }
        Node.objects.update_or_create(
            pk=node.node_id,
            defaults={**fields, "removed_at": None, "inventory_of": ""},
            create_defaults={**fields, "status": Node.Status.ACTIVE},
        )
        Node.objects.filter(pk=node.node_id, status=Node.Status.REMOVED).update(
            status=Node.Status.ACTIVE, status_reason=""
        )


def development_access(tenant: EnvironmentKey, file: Path) -> ObjectApiCredentials:
    """Return a bucket and an access key of an environment; the secret is kept in a file (0600).

    A new key is made when the file is missing or belongs to another database.
    """
    mine = {"organization_id": tenant.organization_id, "environment_pk": tenant.environment_pk}
    bucket, _ = Bucket.objects.get_or_create(
        **mine, name=BUCKET, defaults={"public_name": secrets.token_hex(10)}
    )
    known = _read(file)
    if known is not None and AccessKey.objects.filter(**mine, pk=known.access_key_id).exists():
        return known
    key_id, secret = new_pair()
    access = ObjectApiCredentials(bucket.name, key_id, secret)
    write_private(file, json.dumps(access.as_json()))
    AccessKey.objects.create(pk=key_id, **mine, secret=encrypt(secret), label=LABEL)
    return access


def _read(file: Path) -> ObjectApiCredentials | None:
    try:
        return ObjectApiCredentials(**json.loads(read_text(file)))
    except (ValueError, TypeError):
        return None
