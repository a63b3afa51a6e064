"""Checks of the edge cache: the brain and its nodes."""

from collections.abc import Iterator
from typing import Final

from django.conf import settings

from platform_site.doctor.findings import Finding, Level
from platform_site.lib.errors import PlatformError

SUBJECT: Final = "cache"


def check_cache() -> Iterator[Finding]:
    """Check that the brain accepts the platform's secret, and that a node is online."""
    if not (settings.HAS_CACHE and settings.CACHE.is_enabled):
        yield Finding(SUBJECT, Level.SKIPPED, "The edge cache is switched off (ZCACHE_ENABLED).")
        return
    from edgecache.api import cluster_status  # noqa: PLC0415 - only where the feature is installed

    try:
        status = cluster_status.status()
    except PlatformError:
        message = "The brain does not respond, or refuses the platform's secret."
        advice = "Start `python -m edgecache.brain`; see ZCACHE_BRAIN_URL and ZCACHE_BRAIN_SECRET."
        yield Finding(SUBJECT, Level.FAILED, message, advice)
        return
    online, total = status["online_nodes"], status["total_nodes"]
    if online == total and total:
        yield Finding(SUBJECT, Level.OK, f"The brain answers, {online} nodes are online.")
    else:
        level = Level.WARNING if online else Level.FAILED
        message = f"{online} of {total} nodes are online."
        yield Finding(SUBJECT, level, message, "See `manage.py cachenodes`; start the workers.")
