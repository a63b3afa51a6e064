"""HTTP servers of tests, whose clients may close their connection at any time."""

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class HttpServer(ThreadingHTTPServer):
    """A server with a thread for each connection, which ends with the process."""

    daemon_threads = True
    # Connections that wait to be accepted; the kernel drops more of them for a second or longer.
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a closed connection; print anything else, which is an error of the test."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)
