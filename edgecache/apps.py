"""The application's configuration."""

from django.apps import AppConfig


class EdgeCacheConfig(AppConfig):
    """The platform's side of the edge cache."""

    name = "edgecache"
    verbose_name = "Edge cache"

    def ready(self) -> None:
        """Register the checks, and what organizations and members have in the cache."""
        # Django wants models loaded first.
        from accounts.account_lifecycle import HOOKS  # noqa: PLC0415 - as above
        from edgecache import checks, creators  # noqa: F401, PLC0415 - as above
        from edgecache.tenant_data import CacheData  # noqa: PLC0415 - as above
        from environments import tenant_data  # noqa: PLC0415 - as above
        from organizations import created  # noqa: PLC0415 - as above

        tenant_data.ALL.append(CacheData())
        HOOKS["admin_ended"].append(creators.on_admin_ended)
        HOOKS["user_removed"].append(creators.on_admin_ended)
        created.SOURCES.append(creators.created_by)
