"""The app configuration."""

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """The commands that run an installation."""

    name = "operations"
