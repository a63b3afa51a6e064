"""The base of the fake providers: a real HTTP server, and OAuth 2.0's code grant.

Each fake provider behaves as its provider's documentation says; errors are switched on with
``faults``.
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
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tests.http_server import HttpServer

CLIENT_ID = "zonal-client"
CLIENT_SECRET = "zonal-client-secret-0123456789"


@dataclass
class ReceivedRequest:
    """A request that was received."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]


@dataclass
class FakeResponse:
    """A response; ``body`` is JSON, or bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Return the body in bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass
class Fault:
    """An error at a path: another response, silence, or a response that is slow or endless."""

    response: FakeResponse | None = None
    is_silent: bool = False
    drips: bool = False
    is_endless: bool = False


@dataclass
class Code:
    """An authorization code: its user, and what the exchange has to match."""

    person: Any
    redirect_uri: str
    scope: str
    challenge: str = ""
    nonce: str = ""


Route = Callable[[ReceivedRequest], FakeResponse]


class ProviderServer(ABC):
    """A provider on a port of its own; ``person`` is the user at its sign-in page.

    requests: those received. faults: by path. refuses: the error with which the user cancels.
    """

    def __init__(self) -> None:
        self.person: Any = None
        self.refuses = ""
        self.requests: list[ReceivedRequest] = []
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
        """Return the handlers by path; a final ``*`` matches any ending."""

    def answer(self, request: ReceivedRequest) -> FakeResponse:
        """Find the route and call it."""
        for path, route in self.routes().items():
            is_prefix = path.endswith("*") and request.path.startswith(path[:-1])
            if request.path == path or is_prefix:
                return route(request)
        return FakeResponse(404, {"message": "Not Found"})

    def authorize(self, request: ReceivedRequest) -> FakeResponse:
        """Show the sign-in page and let the user consent immediately (RFC 6749 §4.1.1, §4.1.2)."""
        query = request.query
        # Shown by the provider itself: it never redirects to an unknown URL.
        if query.get("client_id") != CLIENT_ID or query["redirect_uri"] not in self.redirect_uris:
            return FakeResponse(400, {"error": "invalid_request"})
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

    def back(self, query: dict[str, str], values: dict[str, str]) -> FakeResponse:
        """Send the browser back with its ``state``."""
        values = values | ({"state": query["state"]} if "state" in query else {})
        return FakeResponse(
            302, headers={"Location": f"{query['redirect_uri']}?{urlencode(values)}"}
        )

    def redeem(self, request: ReceivedRequest) -> Code | FakeResponse:
        """Return the code of a token request, once (RFC 6749 §4.1.3, RFC 7636 §4.6)."""
        form = request.form
        if "x-www-form-urlencoded" not in request.headers.get("content-type", ""):
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
        """Return whether a token request has the client's secret."""
        return form.get("client_secret") == CLIENT_SECRET

    def token_error(self, error: str, status: int = 400) -> FakeResponse:
        """Refuse a token request (RFC 6749 §5.2)."""
        return FakeResponse(status, {"error": error, "error_description": f"It is {error}."})

    def issue(self, code: Code) -> str:
        """Return an access token for a code."""
        token = secrets.token_urlsafe(24)
        self.tokens[token] = code
        return token

    def bearer_of(self, request: ReceivedRequest) -> Code | None:
        """Return the code that a call's token was issued for."""
        return self.tokens.get(request.headers.get("authorization", "").partition(" ")[2])

    def calls(self, path: str) -> list[ReceivedRequest]:
        """Return the requests for a path."""
        return [request for request in self.requests if request.path == path]


def s256(verifier: str) -> str:
    """Return PKCE's challenge of a verifier."""
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


class _Handler(BaseHTTPRequestHandler):
    """Passes requests to the fake provider."""

    protocol_version = "HTTP/1.1"
    server: "_Http"

    @property
    def provider(self) -> ProviderServer:
        """Return the provider."""
        return self.server.provider

    def handle(self) -> None:
        """Handle a connection; the client may close it at any time."""
        with suppress(ConnectionError):
            super().handle()

    def handle_any(self) -> None:
        """Record the request, and answer it or apply its fault."""
        request = self.read()
        self.provider.requests.append(request)
        fault = self.provider.faults.get(request.path)
        if fault is not None and fault.is_silent:
            self.close_connection = True
            self.provider.over.wait()
        else:
            self.say(request, fault)

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's own names

    def read(self) -> ReceivedRequest:
        """Read the request."""
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        return ReceivedRequest(
            method=self.command,
            path=parts.path,
            query={name: values[0] for name, values in parse_qs(parts.query).items()},
            form=dict(parse_qsl(body)),
            headers={name.lower(): value for name, value in self.headers.items()},
        )

    def say(self, request: ReceivedRequest, fault: Fault | None) -> None:
        """Send the response, or more than that."""
        response = (
            fault.response
            if fault is not None and fault.response
            else self.provider.answer(request)
        )
        body = response.encoded()
        goes_on = fault is not None and (fault.drips or fault.is_endless)
        self.send_response(response.status)
        headers = {"Content-Type": "application/json"} | response.headers
        headers |= {"Content-Length": str(2**40 if goes_on else len(body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        if fault is not None and goes_on:
            self.go_on(drips=fault.drips)

    def go_on(self, *, drips: bool) -> None:
        """Send blanks until the test is over or the client disconnects."""
        self.close_connection = True
        while not self.provider.over.wait(0.05 if drips else 0):
            self.wfile.write(b" " if drips else b" " * 65536)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own
        """Say nothing."""


class _Http(HttpServer):
    """A server on a free port."""

    def __init__(self, provider: ProviderServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.provider = provider
