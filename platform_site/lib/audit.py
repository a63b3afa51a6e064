"""The floor's door to the audit trail, for layers below the one that keeps it."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from platform_site.lib.principals import PlatformRequest


def record(request: PlatformRequest, tag: str, **data: Any) -> None:
    """Note an event of the caller's in its tenant's audit trail, in the caller's transaction.

    tag: ``source:subject:action``. data: JSON values, never a secret.
    """
    recorder: Callable[..., None] = import_string(settings.AUDIT_RECORDER)
    recorder(request, tag, **data)


def note_denial(request: Any, resource: str, action: str) -> None:
    """Note that the caller lacked a permission; DRF's request hands ours through."""
    recorder: Callable[..., None] = import_string(settings.DENIAL_RECORDER)
    recorder(request, resource=resource, action=action)
