"""Hooks that notify higher layers of changes of a user.

The hooks are settings.LIFECYCLE_HOOKS, by dotted path; each gets the user's id and runs in the
caller's transaction, with the user's row locked (except ``user_removed``)::

    trust_ended   the password was changed, or the user disabled: everything that gives access
                  without the password ends (trusted devices, pending sign-ins)
    admin_ended   the user may not create credentials any more: those that it created end
    user_removed  the user will be deleted; called before its row is locked
"""

from typing import Literal
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

Event = Literal["trust_ended", "admin_ended", "user_removed"]


def run_hooks(event: Event, user_id: UUID) -> None:
    """Call an event's hooks, one after the other."""
    for path in settings.LIFECYCLE_HOOKS[event]:
        import_string(path)(user_id)
