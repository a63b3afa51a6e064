"""``/v1/auth/terminal``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import InvalidCredentials, TerminalSignInGone, TooManyAttempts
from accounts.sessions.known_devices import program_of
from accounts.terminal import terminal_sign_ins
from accounts.terminal.serializers import (
    TERMINAL_EXCHANGE_RESULT,
    TerminalAllowedSerializer,
    TerminalDeniedSerializer,
    TerminalExchangeSerializer,
    TerminalSignInSerializer,
    TerminalStartedSerializer,
    TerminalStartSerializer,
)
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.openapi import shapes
from common.permissions import PUBLIC, USER
from common.web.addresses import client_address
from environments.errors import EnvironmentNotFound


class TerminalSignInViewSet(PlatformViewSet):
    """The sign-in of a program in a terminal, allowed in a browser."""

    tag = "Sign in"
    access = {
        "create": PUBLIC,
        "retrieve": USER,
        "allow": USER.fresh(),
        "deny": USER,
        "token": PUBLIC,
    }
    errors = {
        "create": (TooManyAttempts,),
        "retrieve": (TerminalSignInGone,),
        "allow": (TerminalSignInGone, EnvironmentNotFound),
        "deny": (TerminalSignInGone,),
        "token": (InvalidCredentials, EnvironmentNotFound, TerminalSignInGone),
    }
    request_serializers = {"create": TerminalStartSerializer, "token": TerminalExchangeSerializer}
    response_serializers = {
        "create": TerminalStartedSerializer,
        "retrieve": TerminalSignInSerializer,
        "allow": TerminalAllowedSerializer,
        "deny": TerminalDeniedSerializer,
        "token": TERMINAL_EXCHANGE_RESULT,
    }
    lookup_url_kwarg = "request_id"
    path_schemas = {"request_id": shapes.BASE64URL}

    @extend_schema(summary="Start a sign-in at a terminal")
    def create(self, request: Request) -> Response:
        """Request a sign-in that the user allows in a browser, at `page_url`."""
        started = terminal_sign_ins.start(self.platform_request, **self.read(), now=timezone.now())
        return self.respond(started, headers=NO_STORE)

    @extend_schema(summary="Read a sign-in at a terminal")
    def retrieve(self, request: Request, request_id: str) -> Response:
        """Return the requesting program, for the page on which the caller decides."""
        self.principal.own_id  # noqa: B018 - refuses callers that are no user
        waiting = terminal_sign_ins.find(request_id, now=timezone.now())
        shown = {
            "matching_code": terminal_sign_ins.matching_code(request_id),
            "host": waiting.host,
            "program": program_of(waiting.agent),
            "address": waiting.address,
            "is_same_address": waiting.address == client_address(self.platform_request),
            "environment": terminal_sign_ins.environment_of(waiting, self.principal),
            "created_at": waiting.created_at,
            "expires_at": waiting.expires_at,
        }
        return self.respond(shown, headers=NO_STORE)

    @extend_schema(summary="Allow a sign-in at a terminal")
    @action(detail=True, methods=["post"])
    def allow(self, request: Request, request_id: str) -> Response:
        """Let the program sign in as the caller; its session gets this session's proven factors."""
        allowed = terminal_sign_ins.allow(
            self.platform_request, self.principal, request_id, now=timezone.now()
        )
        return self.respond(allowed, headers=NO_STORE)

    @extend_schema(summary="Deny a sign-in at a terminal")
    @action(detail=True, methods=["post"])
    def deny(self, request: Request, request_id: str) -> Response:
        """Deny the request; the program gets no session."""
        self.principal.own_id  # noqa: B018 - refuses callers that are no user
        port = terminal_sign_ins.deny(self.platform_request, request_id, now=timezone.now())
        return self.respond({"port": port}, headers=NO_STORE)

    @extend_schema(summary="Exchange the code of a sign-in at a terminal")
    @action(detail=False, methods=["post"])
    def token(self, request: Request) -> Response:
        """Answer like a login. A code works once, and only for the program that requested it."""
        body = self.read()
        outcome = terminal_sign_ins.exchange(
            self.platform_request, body["code"], body["code_verifier"], now=timezone.now()
        )
        return self.respond(outcome.answer, headers=NO_STORE)
