"""Hooks by which the layers above act when a user changes.

The hooks are settings.LIFECYCLE_HOOKS, by dotted path; each takes the user's id, runs in the
caller's transaction, and finds the user's row locked (but for ``user_removed``)::

    trust_ended        the password was changed, or the user disabled: whatever lets in without it
                       or waits to do so, ends (trusted devices, sign-ins under way)
    account_reclaimed  the account goes to its proven owner: what its maker left in it is removed
    factors_reset   and so are the second factors
    user_removed       the user is about to be deleted; called before its row is locked
"""

from typing import Literal
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

Event = Literal["trust_ended", "account_reclaimed", "factors_reset", "user_removed"]


def run_hooks(event: Event, user_id: UUID) -> None:
    """Call an event's hooks, one after the other."""
    for path in settings.LIFECYCLE_HOOKS[event]:
        import_string(path)(user_id)
