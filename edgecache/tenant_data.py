"""A tenant's contents of the edge cache: exported, counted, and deleted at its end.

Objects are listed, not included: they may be larger than any archive, and S3 clients can download
them with the command in the README. Objects of an origin stay there, and are neither listed nor
counted.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings

from common.archives import ZipWriter
from common.errors import PlatformError
from common.principals import Scope
from edgecache import tasks
from edgecache.api import access_keys, buckets, client, hosts, nodes, objects, origins
from edgecache.api.client import Row
from edgecache.api.errors import NodeNotFound
from environments.models import Environment
from environments.tenant_data import TenantData

NAMES: Final = ("buckets", "objects", "object_bytes", "access_keys")
PAGE: Final = 1000
# Maximum objects listed, of all buckets together.
MAX_OBJECTS: Final = 1_000_000
README: Final = """\
Objects are listed in this folder, and not contained. To copy their bytes, create an access key that
reads in each environment (console: Objects, Access keys), and run with rclone 1.56 or later:

"""
# Credentials from the environment, since others see a program's arguments.
COPY: Final = (
    "AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… rclone copy --checksum"
    " ':s3,provider=Other,env_auth=true,endpoint=\"{endpoint}\":' objects/{slug}\n"
)
AFTERWARDS: Final = """
Each line copies all buckets of its environment; run again, it copies what is new or has changed.
Buckets with an origin of your own (origins.ndjson) list nothing here: copy from that origin.
"""


class CacheData(TenantData):
    """Buckets with their objects, origins, access keys and nodes."""

    def contents_of(self, scope: Scope, *, request_id: str) -> dict[str, int | None]:
        """Return an environment's numbers by their names; None while the brain does not answer."""
        path = f"/v1/environments/{scope.organization_id}/{scope.environment_pk}"
        try:
            found = client.call("GET", path, disabled=dict.fromkeys(NAMES, 0))
        except PlatformError:
            return dict.fromkeys(NAMES)
        return {name: found[name] for name in NAMES}

    def export(self, organization_id: int, archive: ZipWriter) -> None:
        """Add nodes, buckets with their hosts, origins, access keys and lists of objects.

        Raises ArchiveRefused, CacheUnavailable.
        """
        if not client.is_enabled():
            return
        own = (node for node in nodes.all_seen_by(organization_id) if node["is_own"])
        archive.records("cache/nodes.ndjson", own)
        left = MAX_OBJECTS
        rows = Environment.objects.filter(organization_id=organization_id, deleted_at=None)
        live = list(rows.order_by("pk"))
        with archive.entry("cache/README.txt") as write_text:
            write_text(readme([environment.slug for environment in live]).encode())
        for environment in live:
            scope = Scope(organization_id, environment.pk)
            folder = f"cache/{environment.slug}"
            held = buckets.all_of(scope)
            with_hosts = (row | {"hosts": hosts.all_of(scope, row["name"])} for row in held)
            archive.records(f"{folder}/buckets.ndjson", with_hosts)
            archive.records(f"{folder}/origins.ndjson", origins.all_of(scope))
            archive.records(f"{folder}/access_keys.ndjson", access_keys.all_of(scope))
            for row in held:
                if not row["origin"]:
                    listed = _Objects(scope, row["name"], most=left)
                    # By its number: a name is the tenant's text.
                    archive.records(f"{folder}/objects/{row['id']}.ndjson", listed)
                    left -= listed.count
                    if listed.is_cut:
                        archive.note(f"Objects after the first {MAX_OBJECTS}: list them by S3.")
                        return

    def environment_deleted(self, environment_pk: int) -> None:
        """Queue the closing of the environment in the caller's transaction."""
        tasks.close_environment.defer(environment_pk=environment_pk)

    def environment_dropped(self, environment_pk: int) -> None:
        """Delete the environment's buckets, keys and objects; safe to repeat.

        Raises CacheUnavailable, so that the job that drops the environment runs again.
        """
        environment = Environment.objects.get(pk=environment_pk)
        client.call("DELETE", f"/v1/environments/{environment.organization_id}/{environment_pk}")

    def organization_erased(self, organization_id: int) -> None:
        """Deregister the organization's nodes; their objects are moved in the background.

        Raises CacheUnavailable, so that the deletion continues later.
        """
        for node in nodes.all_seen_by(organization_id):
            if node["is_own"]:
                with contextlib.suppress(NodeNotFound):
                    nodes.discard(node["node_id"])
        if client.is_enabled():
            # The networks that its members signed in from.
            client.call("PUT", f"/v1/operators/{organization_id}/networks", body={"networks": []})


def readme(slugs: list[str]) -> str:
    """Return how to copy the objects of these environments."""
    copies = (COPY.format(endpoint=settings.CACHE.s3_url, slug=slug) for slug in slugs)
    return README + "".join(copies) + AFTERWARDS


class _Objects:
    """The objects of one bucket, page by page, up to a number of them."""

    def __init__(self, scope: Scope, bucket: str, *, most: int) -> None:
        self.count = 0
        self.is_cut = False
        self._scope = scope
        self._bucket = bucket
        self._most = most

    def __iter__(self) -> Iterator[Row]:
        after: Any = ""
        while after is not None:
            asked = {"limit": PAGE, **({"after": after} if after else {})}
            page = objects.page_of(self._scope, self._bucket, asked)
            for each in page["objects"]:
                if self.count >= self._most:
                    self.is_cut = True
                    return
                self.count += 1
                yield {"bucket": self._bucket, **each}
            after = page["next_after"]
