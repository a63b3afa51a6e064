"""`zonal login` in a browser: a listener on 127.0.0.1 gets the one-time code, or its user does."""

import hmac
import os
import platform
import queue
import re
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Optional
from urllib.parse import parse_qs, urlsplit

import httpx

import zonal
from zonal.cli import asking
from zonal.cli.configuration import UsageError
from zonal.cli.terminal import say
from zonal.types import LoginAnswer

# As long as the platform keeps a request, by this machine's clock.
WAIT_S = 600.0
MAX_HOST_CHARS = 64
PAGE = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>zonal</title>
<p>Go on at the terminal. You can close this page.</p></html>"""
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": str(len(PAGE)),
    # The address has the code, which is of no use without the verifier.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}


class DeniedError(zonal.ZonalError):
    """The user said no in the browser."""


class Listener:
    """Waits on 127.0.0.1 for the page of one request; whatever else asks gets 404."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        """Use a server that is bound, and not answering yet."""
        self.port = server.server_port
        self.state: Optional[str] = None
        self._answers: queue.Queue[dict[str, str]] = queue.Queue()

    def take(self, host: str, target: str) -> bool:
        """Return True if a request is the page's: by the name of another site it never is."""
        parts = urlsplit(target)
        fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
        is_ours = (
            self.state is not None
            and host == f"127.0.0.1:{self.port}"
            and parts.path == "/callback"
            and hmac.compare_digest(fields.get("state", "").encode(), self.state.encode())
        )
        if is_ours:
            self._answers.put(fields)
        return is_ours

    def code(self) -> str:
        """Wait for the code; raises DeniedError, or UsageError when the time is over."""
        try:
            fields = self._answers.get(timeout=WAIT_S)
        except queue.Empty:
            raise UsageError("Nobody allowed it in ten minutes. Run `zonal login` again.") from None
        if not fields.get("code"):
            raise DeniedError("It was denied in the browser.")
        return fields["code"]


def sign_in(
    url: str, store: zonal.TokenStore, *, environment: Optional[str], opens: bool
) -> LoginAnswer:
    """Sign in with the user's browser, here or on another machine."""
    if not sys.stdin.isatty():
        raise UsageError(
            "A sign-in in a browser begins at a terminal; programs use an API key: "
            "`zonal login --token-stdin`, or ZONAL_TOKEN."
        )
    host = host_name()
    http = httpx.Client(timeout=60.0, headers={"User-Agent": f"zonal/{zonal.__version__} ({host})"})
    with zonal.Client(url, store=store, http=http) as client:
        if opens and _has_browser():
            return _by_listener(client, host, environment)
        started = client.start_browser_sign_in(host=host, environment=environment)
        say(f"Open this page in a browser:\n\n  {_checked(started.request.page_url)}\n")
        say(f"It must show the code {started.request.matching_code}.")
        code = asking.secret("Code from the page: ").strip()
        return _finish(client, started, code)


def host_name() -> str:
    """Return this machine's name as the platform takes it."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", platform.node())[:MAX_HOST_CHARS]
    return name or "unknown"


def _by_listener(client: zonal.Client, host: str, environment: Optional[str]) -> LoginAnswer:
    with listening() as listener:
        started = client.start_browser_sign_in(
            host=host, port=listener.port, environment=environment
        )
        listener.state = started.request.request_id
        page = _checked(started.request.page_url)
        say(f"Your browser opens this page:\n\n  {page}\n")
        say(
            f"It must show the code {started.request.matching_code}.\n"
            "If the browser is on another machine: Ctrl-C, then `zonal login --no-browser`."
        )
        webbrowser.open(page)
        return _finish(client, started, listener.code())


def _finish(client: zonal.Client, started: zonal.BrowserSignIn, code: str) -> LoginAnswer:
    return client.finish_browser_sign_in(
        started, code, second_factor=asking.code, attempts=asking.ATTEMPTS
    )


@contextmanager
def listening() -> Iterator[Listener]:
    """Yield a listener on a free port of 127.0.0.1."""

    class Handler(BaseHTTPRequestHandler):
        # Browsers open connections on which they send nothing.
        timeout = 10

        def do_GET(self) -> None:
            """Take the code of the page."""
            if not listener.take(self.headers.get("Host", ""), self.path):
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_arguments: object) -> None:
            """Print nothing: the address has the code."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        listener = Listener(server)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield listener
        finally:
            server.shutdown()
            thread.join()


def _has_browser() -> bool:
    """Return True if a browser can open here; one that fills this terminal does not count."""
    if "SSH_CONNECTION" in os.environ:
        return False
    if sys.platform in {"win32", "darwin"} or "BROWSER" in os.environ:
        return True
    return "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ


def _checked(page: str) -> str:
    """Return the page's URL; a browser must not be sent to a file or a program."""
    if urlsplit(page).scheme not in {"http", "https"}:
        raise zonal.UnexpectedAnswerError("The platform's page is no URL of the web.")
    return page
