"""The application's name."""

from django.apps import AppConfig


class BrainConfig(AppConfig):
    """The coordination node of the edge cache: a Django application for its schema alone."""

    name = "edgecache.brain"
    label = "brain"
    verbose_name = "Cache brain"
