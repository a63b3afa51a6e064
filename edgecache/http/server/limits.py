"""What a client may take of time and memory."""

from dataclasses import dataclass
from typing import Final

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server, for each connection unless the name says otherwise.

    head_bytes: the request target, and names and values of all fields.
    connections: of all clients; fewer if the system allows fewer open files.
    head_timeout_s: for a whole request head, and for a TLS handshake.
    idle_timeout_s: until the next request begins.
    take_timeout_s: for a client to take write_high_bytes of a response.
    send_timeout_s: for the next byte of a request body.
    linger_bytes, linger_s: read and dropped after an early response, so that the client sees it.
    pipelined: requests that wait for their turn.
    """

    connections: int = 4096
    head_bytes: int = 16_384
    write_high_bytes: int = 2**18
    head_timeout_s: float = 15.0
    idle_timeout_s: float = 75.0
    take_timeout_s: float = 60.0
    send_timeout_s: float = 30.0
    # The minimum rate of a whole request body: this grace, and a second for each of these bytes.
    body_grace_s: float = 60.0
    body_bytes_per_s: int = 1024
    linger_bytes: int = 2**26
    linger_s: float = 5.0
    pipelined: int = 64
