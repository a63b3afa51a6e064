"""The gateway's limits, read from Django's settings through one typed accessor."""

from django.conf import settings

from platform_site.lib.sql_settings import DEFAULTS


def limit(name: str) -> int:
    """Give the value of one of the settings of platform_site.lib.sql_settings.

    Raises KeyError for a name that is not among them.
    """
    default = DEFAULTS[name]
    return int(getattr(settings, name, default))


def cluster_url() -> str:
    """Give the URL of the tenants' cluster; empty where none is configured."""
    return str(getattr(settings, "SQL_CLUSTER_URL", "") or "")
