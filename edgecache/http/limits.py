"""What a client may take of time and memory."""

from typing import Final

HEAD_LIMIT_BYTES: Final = 65_536
WRITE_HIGH_BYTES: Final = 2**18
# A head must come whole within this; an idle connection is kept for that.
HEAD_TIMEOUT_S: Final = 15.0
IDLE_TIMEOUT_S: Final = 75.0
# A client must take WRITE_HIGH_BYTES within this, and send a byte of its body within that.
TAKE_TIMEOUT_S: Final = 60.0
SEND_TIMEOUT_S: Final = 30.0
# And over the whole body no less than this, once the grace is over.
BODY_GRACE_S: Final = 60.0
BODY_LEAST_BYTES_PER_S: Final = 1024
# What is read and thrown away after an early answer, so that the client gets to see it.
LINGER_BYTES: Final = 2**26
LINGER_S: Final = 5.0
# Requests that wait their turn on one connection (pipelining).
PIPELINE_LIMIT: Final = 64
NEVER: Final = float("inf")
