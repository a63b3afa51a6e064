"""The project's own middleware: the outermost one for every request, and Django's for pages only.

A session cookie of the admin must give no access to the API, which authenticates by bearer token or
by the console's own cookies. So sessions, users and messages are skipped under ``/v1/``.
"""

import re
import time
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.request import split_domain_port

from common import problems, tracing
from common.database.request_deadline import REQUEST_DEADLINE
from common.errors import InvalidRequest
from common.ids import uuid7
from common.logs import line_logger
from common.metrics import http
from common.principals import PlatformRequest
from common.scoping import outside
from common.web import client_presence
from common.web.addresses import is_behind_proxy, share_network
from common.web.large_answers import LargeAnswers

log = line_logger("zonal.request", settings.LOG_FORMAT, settings.LOG_LEVEL)

# A client's request id is used only in this form, because it appears in logs and responses.
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.-]{8,64}")
MAX_SHOWN_HOST: Final = 100
NO_PROTO: Final = (
    "The proxy in front of this service must send X-Forwarded-Proto: the scheme that the client "
    "used (docs/production.md)."
)
NO_PROXY: Final = (
    "A proxy in front of this service sends X-Forwarded-Proto, which counts only with "
    "ZTRUSTED_PROXIES (docs/production.md)."
)
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
API_PREFIX: Final = "/v1/"
LARGE_ANSWERS: Final = LargeAnswers(settings.WEB_THREADS // 2)


class RequestMiddleware:
    """Assigns each request an id (``X-Request-Id``, the client's own if it sent one)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, http_request: HttpRequest) -> HttpResponse:
        """Answer the request, count it and log it."""
        request = cast(PlatformRequest, http_request)
        request.request_id = _request_id(request)
        # Set by gunicorn; test clients have none.
        client_presence.set_client_socket(
            request.META.get("gunicorn.socket"), share_network(request)
        )
        scheme = _scheme_sent(request)
        started = time.perf_counter()
        structlog.contextvars.bind_contextvars(request_id=request.request_id)
        try:
            with outside(), REQUEST_DEADLINE.enforced(), tracing.root("request") as span:
                response = _refuse_host(request) or _to_https(request, scheme)
                response = response or self.get_response(request)
                if span is not None:
                    span.update_name(f"{_method(request)} {_route(request)}")
                    span.set_attribute("http.response.status_code", response.status_code)
                    span.set_attribute("zonal.request_id", request.request_id)
            response["X-Request-Id"] = request.request_id
            if not response.streaming and "Content-Length" not in response:
                # Without Content-Length the server would have to send chunks.
                response["Content-Length"] = str(len(response.content))
            LARGE_ANSWERS.begin(request.META, response)
            _observe(request, response, time.perf_counter() - started)
        finally:
            structlog.contextvars.clear_contextvars()
        return response


def _refuse_host(request: HttpRequest) -> HttpResponse | None:
    """Answer 400 to a Host that is not ours, on every route but those of balancers."""
    if request.path in QUIET:
        return None
    try:
        request.get_host()
    except DisallowedHost:
        shown = request.META.get("HTTP_HOST", "")[:MAX_SHOWN_HOST]
        log.warning("host_refused", host=shown, advice="Names are in ZALLOWED_HOSTS.")
        return problems.respond(request, InvalidRequest("This service has no such host name."))
    return None


def _scheme_sent(request: HttpRequest) -> str:
    """Return X-Forwarded-Proto; remove it if no proxy of ours sent it, as Django believes it."""
    sent = str(request.META.get("HTTP_X_FORWARDED_PROTO", ""))
    if not is_behind_proxy(request):
        request.META.pop("HTTP_X_FORWARDED_PROTO", None)
    return sent


def _to_https(request: HttpRequest, sent: str) -> HttpResponse | None:
    """Redirect to https with the port, or say what is wrong with the proxy.

    Before SecurityMiddleware, whose redirect such a proxy would bring here again, for ever.
    sent: X-Forwarded-Proto.
    """
    if not settings.SECURE_SSL_REDIRECT or request.is_secure() or request.path in QUIET:
        return None
    wrong = ""
    if is_behind_proxy(request) and not sent:
        wrong = NO_PROTO
    elif not is_behind_proxy(request) and sent.strip().lower().startswith("https"):
        wrong = NO_PROXY
    if wrong:
        log.warning("proxy_misconfigured", message=wrong)
        return problems.respond(request, InvalidRequest(wrong))
    host, public = request.get_host(), urlsplit(settings.PUBLIC_URL)
    if split_domain_port(host)[0] == public.hostname:
        # A proxy may pass on the name alone.
        host = public.netloc
    return HttpResponsePermanentRedirect(f"https://{host}{request.get_full_path()}")


def _request_id(request: HttpRequest) -> str:
    sent = request.META.get("HTTP_X_REQUEST_ID", "")
    return sent if REQUEST_ID.fullmatch(sent) else str(uuid7())


def _method(request: HttpRequest) -> str:
    return request.method if request.method in http.METHODS else "OTHER"


def _route(request: HttpRequest) -> str:
    # Not the path: paths contain ids, so clients could create any number of labels.
    match = request.resolver_match
    return match.route if match is not None else "unmatched"


def _observe(request: HttpRequest, response: HttpResponse, elapsed_s: float) -> None:
    route = _route(request)
    # Not set if an outer middleware refused the request.
    principal = getattr(request, "principal", None)
    http.observe_request(
        request.method or "",
        route,
        response.status_code,
        elapsed_s,
        organization_id=None if principal is None else principal.organization_id,
    )
    if request.path not in QUIET:
        log.info(
            "request",
            method=request.method,
            route=route,
            status=response.status_code,
            elapsed_ms=round(elapsed_s * 1000, 1),
        )


class PagesOnly:
    """Mixin before a middleware class: requests to the API skip the middleware."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        """Run the middleware, or skip it for the API."""
        if request.path_info.startswith(API_PREFIX):
            return self.get_response(request)
        return super().__call__(request)  # type: ignore[misc]  # the class beside this one


class PagesSessions(PagesOnly, SessionMiddleware):
    """``request.session`` for pages."""


class PagesUsers(PagesOnly, AuthenticationMiddleware):
    """``request.user`` for pages."""


class PagesMessages(PagesOnly, MessageMiddleware):
    """``messages`` for pages."""
