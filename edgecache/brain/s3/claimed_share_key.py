"""The queue key of a request, from unauthenticated claims in its head.

It includes the client's network. A client that claims another organization's key or bucket thus
takes turns from that organization's queue, but not from its clients in other networks.
"""

import re
from typing import Final

from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.delivery.nginx_offload import NginxOffload
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.versions import Directory
from edgecache.http.addresses import network_of
from edgecache.http.scope import HttpScope
from edgecache.runtime.shares import ShareKey

CDN_PREFIX: Final = "/p/"
# The access key in all signature versions, in the Authorization header or in the query.
_CLAIMED_KEY: Final = re.compile(r"(?:Credential|AWSAccessKeyId)=([A-Za-z0-9]{1,32})(?:[/&%]|$)")


class ClaimedShareKeys:
    """Looks up keys, public names and hosts in memory only, never in the database.

    Requests whose organization is not known from memory share the turns of one more organization.
    """

    def __init__(
        self, keys: AccessKeys, directory: Directory, hosts: Hosts, offload: NginxOffload
    ) -> None:
        """offload: knows the client behind an nginx."""
        self._keys = keys
        self._directory = directory
        self._hosts = hosts
        self._offload = offload

    def of(self, scope: HttpScope) -> ShareKey:
        """Return the share key: (organization, client's network)."""
        organization_id = self._organization(scope)
        owner = "unknown" if organization_id is None else organization_id
        return owner, network_of(self._offload.client_of(scope))

    def _organization(self, scope: HttpScope) -> int | None:
        claimed = scope.headers.get("authorization") or scope.query_string
        match = _CLAIMED_KEY.search(claimed) if claimed else None
        if match is not None:
            key = self._keys.known(match[1])
            return None if key is None else key.tenant.organization_id
        name: str | int | None
        if scope.raw_path.startswith(CDN_PREFIX):
            name = scope.raw_path.removeprefix(CDN_PREFIX).partition("/")[0]
        else:
            name = self._hosts.known_bucket_id(scope.authority)
        bucket = None if name is None else self._directory.known_bucket(name)
        return None if bucket is None else bucket.tenant.organization_id
