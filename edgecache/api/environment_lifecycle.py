"""What the cache does when an environment goes (settings.LIFECYCLE_HOOKS)."""

from edgecache import tasks
from edgecache.api import holdings
from environments.models import Environment


def on_environment_deleted(environment_pk: int) -> None:
    """Close it to S3 clients and to the public, by a job of the caller's transaction."""
    tasks.close_environment.defer(environment_pk=environment_pk)


def on_environment_dropped(environment_pk: int) -> None:
    """Drop its buckets, keys and objects; safe to repeat.

    Raises CacheUnavailable, so that the job that drops the environment comes again.
    """
    environment = Environment.unscoped.get(pk=environment_pk)  # unscoped: housekeeping, by key
    holdings.drop_environment(environment.organization_id, environment_pk)
