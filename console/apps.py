"""The app configuration."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """The pages that people see, with their files."""

    name = "console"
