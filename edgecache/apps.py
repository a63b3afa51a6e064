"""The application's name."""

from django.apps import AppConfig


class EdgeCacheConfig(AppConfig):
    """The platform's side of the edge cache."""

    name = "edgecache"
    verbose_name = "Edge cache"
