"""Clients that run slow statements, or wait for a slot, while something else is measured."""

import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from benchmarks.load import request

SLOW = json.dumps({"query": "SELECT pg_sleep(20)"}).encode()
# How long a refused client waits before it tries again: the minimum of Retry-After.
PAUSE_S = 1.0


@contextmanager
def held_statements(port: int, tokens: Sequence[str], *, connections: int) -> Iterator[None]:
    """Keep connections busy with slow statements while the block runs.

    Refused clients try again after a second, as Retry-After says.
    """
    ends = threading.Event()
    payloads = [request("POST", "/v1/sql", SLOW, token) for token in tokens]
    threads = [
        threading.Thread(target=_hold, args=(port, payload, ends), daemon=True)
        for payload in itertools.islice(itertools.cycle(payloads), connections)
    ]
    for thread in threads:
        thread.start()
    # Wait until all run, wait, or were refused once.
    time.sleep(2 * PAUSE_S)
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def _hold(port: int, payload: bytes, ends: threading.Event) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PAUSE_S) as sock:
        while not ends.is_set():
            sock.sendall(payload)
            while not ends.is_set():
                with suppress(TimeoutError):
                    if not sock.recv(65536):
                        return
                    break
            ends.wait(PAUSE_S)
