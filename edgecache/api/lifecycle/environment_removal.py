"""What the cache does when an environment is deleted (settings.LIFECYCLE_HOOKS)."""

from edgecache import tasks
from edgecache.api import client
from environments.models import Environment


def on_environment_deleted(environment_pk: int) -> None:
    """Queue the closing of the environment in the caller's transaction."""
    tasks.close_environment.defer(environment_pk=environment_pk)


def on_environment_dropped(environment_pk: int) -> None:
    """Delete the environment's buckets, keys and objects; safe to repeat.

    Raises CacheUnavailable, so that the job that drops the environment runs again.
    """
    environment = Environment.unscoped.get(pk=environment_pk)  # unscoped: housekeeping, by key
    client.call("DELETE", f"/v1/environments/{environment.organization_id}/{environment_pk}")
