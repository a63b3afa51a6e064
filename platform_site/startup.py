"""The messages of a web server at its start."""

import threading

import structlog
from django.conf import settings

from accounts.tokens import development

log = structlog.get_logger(__name__)


def development_notice() -> str:
    """Return the line with the development token; '' without one.

    It is printed to the terminal only, never to the structured log. In production a configured
    token is refused with a warning.
    """
    if not (settings.ACCOUNTS.dev_org_id and settings.ACCOUNTS.dev_secret):
        return ""
    if development.is_refused():
        log.warning("development_token_refused", reason="production")
        return ""
    return f"Development token: {development.token_for(settings.ACCOUNTS.dev_org_id)}"


def probe_cache() -> None:
    """Log whether the cache's brain responds; the platform starts without waiting for it."""
    if not settings.HAS_CACHE:
        return
    from edgecache.api import client  # noqa: PLC0415 - only where the feature is installed

    threading.Thread(target=client.probe, name="cache-probe", daemon=True).start()
