"""What a process of a brain gets from its parent."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgecache.brain.siblings.mailboxes import Mailboxes
from edgecache.brain.siblings.shared_memory import SharedMemory


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """One process's place among those of a brain. number: from 0. on_ready: called when it serves.

    sockets: those that it listens on, by name. memory, mailboxes: what it shares with the others.
    """

    number: int
    sockets: Mapping[str, socket.socket]
    memory: SharedMemory
    mailboxes: Mailboxes
    on_ready: Callable[[], None]
