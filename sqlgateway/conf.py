"""The gateway's limits, read from Django's settings through one typed accessor."""

from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver

from platform_site.lib.sql_settings import DEFAULTS


@cache
def limit(name: str) -> int:
    """Give the value of one of the settings of platform_site.lib.sql_settings.

    Remembered: a request asks ten times, and Django's settings object takes its time each time.
    Raises KeyError for a name that is not among them.
    """
    default = DEFAULTS[name]
    return int(getattr(settings, name, default))


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    limit.cache_clear()


def cluster_url() -> str:
    """Give the URL of the tenants' cluster; empty where none is configured."""
    return str(getattr(settings, "SQL_CLUSTER_URL", "") or "")
