"""What a process of a brain gets from its parent."""

from collections.abc import Callable
from dataclasses import dataclass

from edgecache.brain.process.sockets import Sockets
from edgecache.brain.siblings.mailboxes import Mailboxes
from edgecache.brain.siblings.shared_memory import SharedMemory


@dataclass(frozen=True, slots=True)
class Place:
    """One process's place among those of a brain. number: from 0. on_ready: called when it serves.

    sockets: those that it listens on. memory, mailboxes: what it shares with the others.
    """

    number: int
    sockets: Sockets
    memory: SharedMemory
    mailboxes: Mailboxes
    on_ready: Callable[[], None]
