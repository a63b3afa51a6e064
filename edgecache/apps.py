"""The application's configuration."""

from django.apps import AppConfig


class EdgeCacheConfig(AppConfig):
    """The platform's side of the edge cache."""

    name = "edgecache"
    verbose_name = "Edge cache"

    def ready(self) -> None:
        """Register the checks."""
        from edgecache import checks  # noqa: F401, PLC0415 - Django wants models loaded first
