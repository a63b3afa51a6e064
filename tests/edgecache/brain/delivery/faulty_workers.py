"""A proxy between the brain and a worker, with faults that tests choose."""

import socket
import struct
import threading
from collections.abc import Callable
from typing import Final

Fault = Callable[["Passage"], None]
HEAD_END: Final = b"\r\n\r\n"
# One object, and several small ones.
COPIES: Final = (b"PUT /o/", b"PUT /batch", b"POST /batch")
REFUSAL: Final = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"


class Passage:
    """A worker's response: head and body, and the connection to the brain."""

    def __init__(self, client: socket.socket, head: bytes, body: bytes) -> None:
        self.client, self.head, self.body = client, head, body
        self.stopping = threading.Event()

    def send(self, data: bytes) -> None:
        """Send bytes to the brain."""
        self.client.sendall(data)

    def reset(self) -> None:
        """Reset the connection, as a killed process does."""
        option = struct.pack("ii", 1, 0)
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        self.client.close()


def healthy(passage: Passage) -> None:
    """Pass the response on."""
    passage.send(passage.head + passage.body)


def altered(passage: Passage) -> None:
    """Flip a bit in the middle."""
    body = bytearray(passage.body)
    body[len(body) // 2] ^= 1
    passage.send(passage.head + bytes(body))


def altered_last(passage: Passage) -> None:
    """Flip the very last bit."""
    passage.send(passage.head + passage.body[:-1] + bytes([passage.body[-1] ^ 1]))


def dies_midway(passage: Passage) -> None:
    """Send half and reset."""
    passage.send(passage.head + passage.body[: len(passage.body) // 2])
    passage.reset()


def dies_before(passage: Passage) -> None:
    """Reset without a response."""
    passage.reset()


def stalls_midway(passage: Passage) -> None:
    """Send half and stall."""
    passage.send(passage.head + passage.body[: len(passage.body) // 2])
    passage.stopping.wait(30)


def drips(passage: Passage) -> None:
    """Send half, and then a byte every second."""
    half = len(passage.body) // 2
    passage.send(passage.head + passage.body[:half])
    for number in range(half, len(passage.body)):
        if passage.stopping.wait(1):
            return
        passage.send(passage.body[number : number + 1])


def stalls_before(passage: Passage) -> None:
    """Log nothing."""
    passage.stopping.wait(30)


def fails(passage: Passage) -> None:
    """Respond 500."""
    passage.send(REFUSAL)


def has_lost_it(passage: Passage) -> None:
    """Respond 404."""
    passage.send(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


def speaks_nonsense(passage: Passage) -> None:
    """Respond with something that is not HTTP."""
    passage.send(b"\x00\xff" * 500 + HEAD_END)
    passage.reset()


def shortens(passage: Passage) -> None:
    """Announce less and send less: another object."""
    body = passage.body[:-1]
    passage.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))


def lengthens(passage: Passage) -> None:
    """Send more than announced."""
    passage.send(passage.head + passage.body + b"more")


class Proxy:
    """Listens for the brain, asks the worker, and passes on what its fault lets pass."""

    def __init__(self, worker_port: int) -> None:
        self.worker_port = worker_port
        self.fault: Fault = healthy
        self.answered = 0
        self.refuses_copies = False
        self.refused = 0
        self._passages: list[Passage] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Close it."""
        for passage in self._passages:
            passage.stopping.set()
        # Closing does not wake a blocked accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                while request := _read_message(client):
                    if self.refuses_copies and request.startswith(COPIES):
                        self.refused += 1
                        client.sendall(REFUSAL)
                        continue
                    with socket.create_connection(("127.0.0.1", self.worker_port)) as worker:
                        worker.sendall(request)
                        answer = _read_message(worker)
                    if not request.startswith(b"GET /o/"):
                        client.sendall(answer)
                        continue
                    self.answered += 1
                    head, _, body = answer.partition(HEAD_END)
                    passage = Passage(client, head + HEAD_END, body)
                    self._passages.append(passage)
                    self.fault(passage)
        except OSError:
            return


def _read_message(sock: socket.socket) -> bytes:
    """Return a message with its body; empty at the end of the connection."""
    data = b""
    while HEAD_END not in data:
        piece = sock.recv(2**16)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(HEAD_END)
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    pieces = [data]
    left = length - len(body)
    while left > 0:
        piece = sock.recv(min(left, 2**20))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
