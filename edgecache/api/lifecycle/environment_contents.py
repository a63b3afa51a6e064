"""What an environment holds in the edge cache, in numbers (settings.ENVIRONMENT_CONTENTS)."""

from typing import Final

from edgecache.api import client
from platform_site.lib.errors import PlatformError
from platform_site.lib.principals import Scope

NAMES: Final = ("buckets", "objects", "object_bytes", "access_keys")


def contents_of(scope: Scope, *, request_id: str) -> dict[str, int | None]:
    """Return the numbers by their names; None while the brain does not answer.

    Objects of origins of the tenant's own are not counted: they stay there.
    """
    path = f"/v1/environments/{scope.organization_id}/{scope.environment_pk}"
    try:
        found = client.call("GET", path, disabled=dict.fromkeys(NAMES, 0))
    except PlatformError:
        return dict.fromkeys(NAMES)
    return {name: found[name] for name in NAMES}
