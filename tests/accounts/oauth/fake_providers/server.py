"""What the stand-ins of the providers share: a real HTTP server, and OAuth 2.0's code grant.

Each stand-in behaves as its provider's documentation says; what may go wrong there is switched on
with ``faults``.
"""

import base64
import hashlib
import json
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

CLIENT_ID = "zonal-client"
CLIENT_SECRET = "zonal-client-secret-0123456789"


@dataclass
class Asked:
    """A request that came."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]


@dataclass
class Said:
    """An answer; ``body`` is JSON, or text as it is."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass
class Fault:
    """What goes wrong at a path: another answer, silence, or an answer that drips or never ends."""

    said: Said | None = None
    is_silent: bool = False
    drips: bool = False
    is_endless: bool = False


@dataclass
class Code:
    """An authorization code: for whom, and what the exchange has to match."""

    person: Any
    redirect_uri: str
    scope: str
    challenge: str = ""
    nonce: str = ""


Route = Callable[[Asked], Said]


class ProviderServer(ABC):
    """A provider on a port of its own; ``person`` is who sits at its sign-in page.

    asked: what came. faults: by path. refuses: the person does not agree.
    """

    def __init__(self) -> None:
        self.person: Any = None
        self.refuses = ""
        self.asked: list[Asked] = []
        self.faults: dict[str, Fault] = {}
        self.codes: dict[str, Code] = {}
        self.tokens: dict[str, Code] = {}
        self.redirect_uris: set[str] = set()
        self.over = threading.Event()
        self.http = _Http(self)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    @abstractmethod
    def routes(self) -> dict[str, Route]:
        """Return what answers which path; a ``*`` at its end takes what follows."""

    def answer(self, asked: Asked) -> Said:
        """Find the route and ask it."""
        for path, route in self.routes().items():
            is_prefix = path.endswith("*") and asked.path.startswith(path[:-1])
            if asked.path == path or is_prefix:
                return route(asked)
        return Said(404, {"message": "Not Found"})

    def authorize(self, asked: Asked) -> Said:
        """Show the sign-in page and have the person answer it at once (RFC 6749 §4.1.1, §4.1.2)."""
        query = asked.query
        # Shown by the provider itself: it sends nobody to an address it does not know.
        if query.get("client_id") != CLIENT_ID or query["redirect_uri"] not in self.redirect_uris:
            return Said(400, {"error": "invalid_request"})
        if query.get("response_type") != "code":
            return self.back(query, {"error": "unsupported_response_type"})
        if self.refuses:
            return self.back(query, {"error": self.refuses})
        if query.get("code_challenge_method", "S256") != "S256":
            return self.back(query, {"error": "invalid_request"})
        code = secrets.token_urlsafe(16)
        self.codes[code] = Code(
            person=self.person,
            redirect_uri=query["redirect_uri"],
            scope=query.get("scope", ""),
            challenge=query.get("code_challenge", ""),
            nonce=query.get("nonce", ""),
        )
        return self.back(query, {"code": code})

    def back(self, query: dict[str, str], values: dict[str, str]) -> Said:
        """Send the browser back with the ``state`` it came with."""
        values = values | ({"state": query["state"]} if "state" in query else {})
        return Said(302, headers={"Location": f"{query['redirect_uri']}?{urlencode(values)}"})

    def redeem(self, asked: Asked) -> Code | Said:
        """Return the code of a token request, once (RFC 6749 §4.1.3, RFC 7636 §4.6)."""
        form = asked.form
        if "x-www-form-urlencoded" not in asked.headers.get("content-type", ""):
            return self.token_error("invalid_request")
        if form.get("client_id") != CLIENT_ID or not self.is_our_client(form):
            return self.token_error("invalid_client", 401)
        if form.get("grant_type") != "authorization_code":
            return self.token_error("unsupported_grant_type")
        code = self.codes.pop(form.get("code", ""), None)
        if code is None or code.redirect_uri != form.get("redirect_uri"):
            return self.token_error("invalid_grant")
        if code.challenge and s256(form.get("code_verifier", "")) != code.challenge:
            return self.token_error("invalid_grant")
        return code

    def is_our_client(self, form: dict[str, str]) -> bool:
        """Return whether a token request comes from the client."""
        return form.get("client_secret") == CLIENT_SECRET

    def token_error(self, error: str, status: int = 400) -> Said:
        """Refuse a token request (RFC 6749 §5.2)."""
        return Said(status, {"error": error, "error_description": f"It is {error}."})

    def issue(self, code: Code) -> str:
        """Return an access token for a code."""
        token = secrets.token_urlsafe(24)
        self.tokens[token] = code
        return token

    def bearer_of(self, asked: Asked) -> Code | None:
        """Return for whom a call's token was issued."""
        return self.tokens.get(asked.headers.get("authorization", "").partition(" ")[2])

    def calls(self, path: str) -> list[Asked]:
        """Return what was asked of a path."""
        return [asked for asked in self.asked if asked.path == path]


def s256(verifier: str) -> str:
    """Return PKCE's challenge of a verifier."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


class _Handler(BaseHTTPRequestHandler):
    """Hands requests to the provider whose server it is."""

    protocol_version = "HTTP/1.1"
    server: "_Http"

    @property
    def provider(self) -> ProviderServer:
        """Return the provider."""
        return self.server.provider

    def handle(self) -> None:
        """Handle a connection; who has waited long enough hangs up, and leaves nothing to read."""
        with suppress(ConnectionError):
            super().handle()

    def handle_any(self) -> None:
        """Note the request, and answer it or let it go wrong."""
        asked = self.read()
        self.provider.asked.append(asked)
        fault = self.provider.faults.get(asked.path)
        if fault is not None and fault.is_silent:
            self.close_connection = True
            self.provider.over.wait()
        else:
            self.say(asked, fault)

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's own names

    def read(self) -> Asked:
        """Read the request."""
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        return Asked(
            method=self.command,
            path=parts.path,
            query={name: values[0] for name, values in parse_qs(parts.query).items()},
            form=dict(parse_qsl(body)),
            headers={name.lower(): value for name, value in self.headers.items()},
        )

    def say(self, asked: Asked, fault: Fault | None) -> None:
        """Send the answer, or more than it."""
        said = fault.said if fault is not None and fault.said else self.provider.answer(asked)
        body = said.encoded()
        goes_on = fault is not None and (fault.drips or fault.is_endless)
        self.send_response(said.status)
        headers = {"Content-Type": "application/json"} | said.headers
        headers |= {"Content-Length": str(2**40 if goes_on else len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        if fault is not None and goes_on:
            self.go_on(drips=fault.drips)

    def go_on(self, *, drips: bool) -> None:
        """Send blanks until the test is over or the other side hangs up."""
        self.close_connection = True
        while not self.provider.over.wait(0.05 if drips else 0):
            self.wfile.write(b" " if drips else b" " * 65536)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own
        """Say nothing."""


class _Http(ThreadingHTTPServer):
    """Listens on a port that is free."""

    daemon_threads = True

    def __init__(self, provider: ProviderServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider
