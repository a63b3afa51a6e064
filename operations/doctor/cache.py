"""Checks of the edge cache: the brain and its nodes."""

from collections.abc import Iterator
from typing import Final

from django.conf import settings

from common.errors import PlatformError
from common.machine.reasons import reason
from operations.doctor.findings import Finding, Level

SUBJECT: Final = "cache"


def check_cache() -> Iterator[Finding]:
    """Check that the brain accepts the platform's secret, and that approved nodes are online.

    Nodes of other operators are theirs to start: only the platform's own ones are a warning.
    """
    if not (settings.HAS_CACHE and settings.CACHE.is_enabled):
        yield Finding(SUBJECT, Level.SKIPPED, "The edge cache is switched off (ZCACHE_ENABLED).")
        return
    from edgecache.api import staff_overview  # noqa: PLC0415 - only where the feature is installed

    try:
        nodes = staff_overview.all_nodes()
    except PlatformError as exc:
        message = "The brain does not respond, or refuses the platform's secret."
        if exc.__cause__ is not None:
            message = f"The brain does not respond: {reason(exc.__cause__)}"
        advice = "Start `python -m edgecache.brain`; see ZCACHE_BRAIN_URL and ZCACHE_BRAIN_SECRET."
        yield Finding(SUBJECT, Level.FAILED, message, advice)
        return
    approved = [node for node in nodes if node["status"] == "active"]
    if not nodes:
        message = "The brain answers, and serves by itself: no node is registered."
        advice = "Nothing has to be done; docs/cache-operations.md has how nodes are added."
        yield Finding(SUBJECT, Level.SKIPPED, message, advice)
        return
    if not approved:
        message = f"The brain answers. None of {len(nodes)} nodes is approved."
        yield Finding(SUBJECT, Level.WARNING, message, "See `manage.py cachenodes`; approve some.")
        return
    away = [node for node in approved if node["health"] != "online"]
    online = len(approved) - len(away)
    message = f"{online} of {len(approved)} approved nodes are online."
    if online and all(node["organization_id"] is not None for node in away):
        others = " The rest are other operators'." if away else ""
        yield Finding(SUBJECT, Level.OK, f"The brain answers. {message}{others}")
    else:
        level = Level.WARNING if online else Level.FAILED
        yield Finding(SUBJECT, level, message, "See `manage.py cachenodes`; start the workers.")
