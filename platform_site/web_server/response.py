"""gunicorn's response, sent with as few system calls as possible.

Each system call releases the interpreter lock, for which the thread then waits again.
"""

import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final

from gunicorn.http import wsgi  # type: ignore[import-untyped]  # it has no types

from common.web.pace import SLOWEST_TAKEN_BYTES_PER_S, MinimumRate

# Longer pieces of a body are not copied behind the head.
JOIN_LIMIT_BYTES: Final = 256 * 1024


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


class Response(wsgi.Response):  # type: ignore[misc]  # untyped library
    """A response whose head is sent together with the first piece of its body."""

    headers_sent: bool
    _unsent = b""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.pace = MinimumRate(SLOWEST_TAKEN_BYTES_PER_S)

    def default_headers(self) -> list[str]:
        """Return the status line and the headers that the server adds."""
        major, minor = self.req.version
        lines = [
            f"HTTP/{major}.{minor} {self.status}\r\n",
            f"Server: {self.version}\r\nDate: {_date(int(time.time()))}\r\n",
            f"Connection: {'close' if self.should_close() else 'keep-alive'}\r\n",
        ]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked\r\n")
        return lines

    def send_headers(self) -> None:
        """Prepare the head; the next piece of the body, or the end, sends it."""
        if self.headers_sent:
            return
        lines = self.default_headers()
        lines.extend([f"{name}: {value}\r\n" for name, value in self.headers])
        self._unsent = f"{''.join(lines)}\r\n".encode("latin-1")
        self.headers_sent = True

    def can_sendfile(self) -> bool:
        """Return False: sendfile(2) would send before the buffered head."""
        return False

    def _emit_body(self, data: bytes) -> None:
        self._send(b"%X\r\n%b\r\n" % (len(data), data) if self.chunked else data)

    def _send(self, data: bytes) -> None:
        head, self._unsent = self._unsent, b""
        if head and len(data) > JOIN_LIMIT_BYTES:
            self._send_all(head)
        elif head:
            data = head + data
        self._send_all(data)

    def _send_all(self, data: bytes) -> None:
        """Send to a client that must read at the minimum rate. Raises OSError."""
        left = memoryview(data)
        while left:
            began = time.monotonic()
            # Fewer bytes if the client takes longer than the socket's timeout.
            sent = self.sock.send(left)
            self.pace.count(time.monotonic() - began, sent)
            left = left[sent:]

    def close(self) -> None:
        """Send the end of the response."""
        self.send_headers()
        if self.chunked or self._unsent:
            self._send(b"0\r\n\r\n" if self.chunked else b"")


def answer(application: Any, environ: dict[str, Any], response: Response) -> None:
    """Call a WSGI application and send what it returns."""
    pieces = application(environ, response.start_response)
    try:
        for piece in pieces:
            response.write(piece)
        response.close()
    finally:
        if hasattr(pieces, "close"):
            pieces.close()
