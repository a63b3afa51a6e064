"""Stripe on loopback, with the documented behaviour that billing uses.

Results are kept by idempotency key, failures of the executed request included; a repeated key with
other parameters is refused.
"""

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.http_server import HttpServer

KEY = "sk_test_0123456789abcdef"
WEBHOOK_SECRET = "whsec_0123456789abcdef"
ACCOUNT = "acct_1OlgaOlgaOlga"
Result = tuple[int, dict[str, Any]]


def refusal(status: int, kind: str, code: str = "") -> Result:
    """Return an error object; its message must not leave the platform's process."""
    return status, {"error": {"type": kind, "code": code, "message": f"stripe says {code}"}}


def event(kind: str, thing: dict[str, Any], **fields: Any) -> bytes:
    """Return the body of an event about an object."""
    body = {"id": "evt_1", "object": "event", "type": kind, "livemode": False}
    return json.dumps(body | {"data": {"object": thing}} | fields).encode()


def signature(body: bytes, *, secret: str = WEBHOOK_SECRET, age_s: int = 0) -> str:
    """Return the header that Stripe signs an event with."""
    at = int(time.time()) - age_s
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()},v0=6ffbb59b2300aae63f272406069a9788"


# What happens to the next requests that change something, by name.
FAULTS: dict[str, Result] = {
    "rate limit": refusal(429, "invalid_request_error", "rate_limit"),
    "broken": refusal(500, "api_error"),
    "concurrent": refusal(409, "idempotency_error", "idempotency_key_in_use"),
    "wrong key": refusal(401, "invalid_request_error"),
    "no permission": refusal(403, "invalid_request_error"),
    "poor": refusal(400, "invalid_request_error", "balance_insufficient"),
    "unknown account": refusal(400, "invalid_request_error", "resource_missing"),
    "other refusal": refusal(400, "invalid_request_error", "parameter_invalid"),
    "nonsense": (200, {"hello": "world"}),
}


@dataclass
class Stripe:
    """The state. plan: what happens to the next POSTs; the others are carried out.

    In addition to FAULTS: ``lost`` (the connection ends before), ``unanswered`` (it ends after).
    """

    accounts: dict[str, dict[str, Any]] = field(default_factory=dict)
    transfers: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, tuple[dict[str, str], Result]] = field(default_factory=dict)
    plan: list[str] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def connect(self, account: str = ACCOUNT, **fields: Any) -> None:
        """Add a connected account that can be paid."""
        self.accounts[account] = {
            "id": account,
            "object": "account",
            "payouts_enabled": True,
            "capabilities": {"transfers": "active"},
        } | fields

    def answer(self, method: str, path: str, params: dict[str, str], key: str) -> Result | None:
        """Carry a request out; None ends the connection without an answer."""
        self.requests.append((method, path, params))
        if method == "GET":
            return self.read(path, params)
        step = self.plan.pop(0) if self.plan else ""
        if step in FAULTS:
            return FAULTS[step]
        if step == "lost":
            return None
        if key in self.results:
            known, result = self.results[key]
            if known != params:
                return refusal(400, "idempotency_error")
        else:
            result = self.create(path, params)
            self.results[key] = (params, result)
        return None if step == "unanswered" else result

    def read(self, path: str, params: dict[str, str]) -> Result:
        """Answer a GET."""
        if path == "/v1/transfers":
            group = params["transfer_group"]
            found = [one for one in self.transfers if one["transfer_group"] == group]
            return 200, {"object": "list", "data": found, "has_more": False, "url": path}
        account = self.accounts.get(path.removeprefix("/v1/accounts/"))
        missing = refusal(403, "invalid_request_error", "account_invalid")
        return (200, account) if account else missing

    def create(self, path: str, params: dict[str, str]) -> Result:
        """Carry out a POST."""
        if path == "/v1/transfers":
            transfer = {
                "id": f"tr_{len(self.transfers)}",
                "object": "transfer",
                "amount": int(params["amount"]),
                "amount_reversed": 0,
                "currency": params["currency"],
                "destination": params["destination"],
                "transfer_group": params["transfer_group"],
                "reversed": False,
            }
            self.transfers.append(transfer)
            return 200, dict(transfer)
        if path == "/v1/accounts":
            name = f"acct_1Opened{len(self.accounts):04d}"
            self.connect(name, payouts_enabled=False)
            return 200, self.accounts[name]
        if path == "/v1/account_links":
            url = f"https://connect.stripe.com/setup/e/{params['account']}"
            return 200, {"object": "account_link", "url": url}
        if path == "/v1/checkout/sessions":
            name = f"cs_{len(self.sessions)}"
            price = "line_items[0][price_data]"
            session = {
                "id": name,
                "object": "checkout.session",
                "url": f"https://checkout.stripe.com/c/pay/{name}",
                "amount_total": int(params[f"{price}[unit_amount]"]),
                "currency": params[f"{price}[currency]"],
                "metadata": {key: params[f"metadata[{key}]"] for key in ("top_up", "organization")},
                "payment_intent": None,
                "payment_status": "unpaid",
            }
            self.sessions.append(session)
            return 200, dict(session)
        return refusal(404, "invalid_request_error")


class _Handler(BaseHTTPRequestHandler):
    """Passes requests on."""

    protocol_version = "HTTP/1.1"
    server: "_Http"

    def handle_any(self) -> None:
        """Read, check the key, answer."""
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        params = dict(parse_qsl(parts.query or body))
        key = self.headers.get("Idempotency-Key") or ""
        if self.headers["Authorization"] == f"Bearer {KEY}":
            result = self.server.stripe.answer(self.command, parts.path, params, key)
        else:
            result = FAULTS["wrong key"]
        if result is None:
            self.close_connection = True
            return
        data = json.dumps(result[1]).encode()
        self.send_response(result[0])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = handle_any  # noqa: N815 - http.server's own names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own
        """Say nothing."""


class _Http(HttpServer):
    """A server on a free port."""

    def __init__(self, stripe: Stripe) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stripe = stripe


@contextmanager
def serving() -> Iterator[Stripe]:
    """Run a server."""
    stripe = Stripe()
    http = _Http(stripe)
    stripe.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stripe
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
