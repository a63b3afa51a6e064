"""Hooks that notify higher layers of changes of a user.

Apps add hooks in ``AppConfig.ready()``. Each gets the user's id and runs in the caller's
transaction, with the user's row locked (except ``user_removed``)::

    trust_ended      the password was changed, or the user disabled: everything that gives access
                     without the password ends (trusted devices, pending sign-ins)
    admin_ended      the user may not create credentials any more: those that it created end
    address_changed  the user has proven another address, and has it now
    user_removed     the user will be deleted; called before its row is locked
"""

from collections.abc import Callable
from typing import Final, Literal
from uuid import UUID

Event = Literal["trust_ended", "admin_ended", "address_changed", "user_removed"]
Hook = Callable[[UUID], None]

HOOKS: Final[dict[Event, list[Hook]]] = {
    "trust_ended": [],
    "admin_ended": [],
    "address_changed": [],
    "user_removed": [],
}


def run_hooks(event: Event, user_id: UUID) -> None:
    """Call an event's hooks, one after the other."""
    for hook in HOOKS[event]:
        hook(user_id)
