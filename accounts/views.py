"""Sign-up, login, the caller's sessions, and the caller: ``/v1/auth``, ``/v1/whoami``."""

from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit_tags import AccountTag
from accounts.errors import (
    EmailTaken,
    HashingBusy,
    InvalidCredentials,
    SessionNotFound,
    SessionRevoked,
    SwitchedTooOften,
    TokenSuperseded,
    TooManyAttempts,
)
from accounts.models import Session
from accounts.serializers import (
    SIGN_IN_RESULT,
    LoginSerializer,
    PermissionsSerializer,
    RefreshTokenSerializer,
    ScopedTokenPairSerializer,
    SessionsEndedSerializer,
    SessionSerializer,
    SignupAnswerSerializer,
    SignupSerializer,
    SwitchSerializer,
    TokenPairSerializer,
    WhoamiSerializer,
)
from accounts.sessions import own_sessions, refresh, sessions
from accounts.sessions.sessions import SessionTokens
from accounts.signin import credentials, metrics, signin, signup
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from accounts.tokens import session_tokens
from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, PlatformViewSet
from common.errors import TokenExpired, TokenInvalid
from common.openapi import shapes
from common.permissions import MEMBER, PUBLIC, USER, effective
from environments.errors import EnvironmentNotFound


class SignInViewSet(PlatformViewSet):
    """Sign-up, and sign-in with e-mail and password."""

    tag = "Sign in"
    access = {"signup": PUBLIC, "login": PUBLIC}
    errors = {
        "signup": (EmailTaken, TooManyAttempts, HashingBusy),
        "login": (InvalidCredentials, EnvironmentNotFound, TooManyAttempts, HashingBusy),
    }
    request_serializers = {"signup": SignupSerializer, "login": LoginSerializer}
    response_serializers = {"signup": SignupAnswerSerializer, "login": SIGN_IN_RESULT}
    success_statuses = {"signup": status.HTTP_201_CREATED}

    @extend_schema(summary="Sign up")
    @action(detail=False, methods=["post"])
    def signup(self, request: Request) -> Response:
        """Create an organization with `live` and `sandbox`, its first admin, and a session."""
        body = self.read()
        done = signup.sign_up(
            self.platform_request,
            body["email"],
            body["password"],
            organization=body["organization"],
            now=timezone.now(),
        )
        if not isinstance(done, SessionTokens):
            # No stage stops this sign-in: the policy of a new organization requires no factor.
            return self.respond(done.answer, serializer=SIGN_IN_RESULT, headers=NO_STORE)
        return self.respond(done.pair() | done.extra, headers=NO_STORE)

    @extend_schema(summary="Log in")
    @action(detail=False, methods=["post"])
    def login(self, request: Request) -> Response:
        """Open a session in an environment: the one named, else the last used, else `live`."""
        body = self.read()
        with metrics.count_refusals(SignInMethod.PASSWORD):
            done = self._log_in(body)
        return self.respond(done.answer, headers=NO_STORE)

    def _log_in(self, body: dict[str, Any]) -> SessionTokens | StageResponse:
        now = timezone.now()
        try:
            user = credentials.verify(
                body["email"],
                body["password"],
                source=sessions.request_source(self.platform_request),
                now=now,
                is_trusted_device=partial(
                    signin.is_from_trusted_device, self.platform_request, now=now
                ),
            )
        except InvalidCredentials:
            signin.note_refused(self.platform_request, body["email"])
            raise
        environment = signin.environment_for(user, body["environment"])
        attempt = SignInAttempt(
            user, environment, method=SignInMethod.PASSWORD, amr=["pwd"], now=now
        )
        with transaction.atomic():
            return signin.finish(self.platform_request, attempt)


class RefreshTokenViewSet(PlatformViewSet):
    """Actions with a refresh token on its session."""

    tag = "Sign in"
    access = {"refresh": PUBLIC, "switch": PUBLIC, "logout": PUBLIC}
    errors = {
        "refresh": (SessionRevoked, TokenExpired, TokenInvalid, TokenSuperseded),
        "switch": (
            SessionRevoked,
            TokenExpired,
            TokenInvalid,
            TokenSuperseded,
            EnvironmentNotFound,
            SwitchedTooOften,
        ),
        "logout": (TokenInvalid,),
    }
    request_serializers = {
        "refresh": RefreshTokenSerializer,
        "switch": SwitchSerializer,
        "logout": RefreshTokenSerializer,
    }
    response_serializers = {
        "refresh": TokenPairSerializer,
        "switch": ScopedTokenPairSerializer,
        "logout": None,
    }

    @extend_schema(summary="Refresh")
    @action(detail=False, methods=["post"])
    def refresh(self, request: Request) -> Response:
        """Exchange a refresh token for a new pair; replaying a used one ends the sign-in."""
        token = self.read()["refresh_token"]
        done = refresh.refresh(self.platform_request, token, now=timezone.now())
        return self.respond(done.pair(), headers=NO_STORE)

    @extend_schema(summary="Switch environment")
    @action(detail=False, methods=["post"])
    def switch(self, request: Request) -> Response:
        """Exchange a refresh token for a session in another environment of the organization."""
        body = self.read()
        done = refresh.switch(
            self.platform_request,
            body["refresh_token"],
            environment=body["environment"],
            keep_current=body["keep_current"],
            now=timezone.now(),
        )
        return self.respond(done.pair(), headers=NO_STORE)

    @extend_schema(summary="Log out")
    @action(detail=False, methods=["post"])
    def logout(self, request: Request) -> Response:
        """End the session of a refresh token; its access tokens stop working immediately."""
        token, now = self.read()["refresh_token"], timezone.now()
        pointer = session_tokens.read(token, "rt+jwt", now=now, allow_expired=True)
        with transaction.atomic():
            session = sessions.end(pointer, now=now)
            if session is not None:
                trail.record_user(
                    self.platform_request,
                    AccountTag.SESSION_DELETE,
                    session.user,
                    session=str(session.id),
                )
        return self.no_content(headers=NO_STORE)


@extend_schema_view(
    list=extend_schema(
        operation_id="sessions_list",
        summary="List the caller's sessions",
        description="List the sessions that can still be used, the newest first.",
    ),
)
class SessionViewSet(ListAction):
    """The caller's own sessions."""

    tag = "Account"
    # Ending sessions only makes an account safer, so it requires no fresh proof.
    access = {"list": USER.always(), "destroy": USER.always(), "destroy_all": USER.always()}
    errors = {"destroy": (SessionNotFound,)}
    serializer_class = SessionSerializer
    response_serializers = {"destroy_all": SessionsEndedSerializer}
    lookup_url_kwarg = "session_id"
    path_schemas = {"session_id": shapes.UUID}

    def get_queryset(self) -> QuerySet[Session]:
        """Return the caller's sessions that can still be used."""
        rows = own_sessions.live_sessions(self.principal, now=timezone.now())
        is_current = ExpressionWrapper(Q(pk=self.principal.session_id), BooleanField())
        return rows.select_related("environment").annotate(current=is_current)

    @extend_schema(operation_id="sessions_end_others", summary="End all other sessions")
    def destroy_all(self, request: Request) -> Response:
        """End every session except the requesting one; access tokens stop working immediately."""
        ended = own_sessions.end_others(self.platform_request, self.principal, now=timezone.now())
        return self.respond({"ended": ended})

    @extend_schema(summary="End a session")
    def destroy(self, request: Request, session_id: str) -> Response:
        """End a session; its access tokens stop working immediately."""
        own_sessions.end(self.platform_request, self.principal, session_id, now=timezone.now())
        return self.no_content()


class CallerViewSet(PlatformViewSet):
    """The caller's identity and permissions."""

    tag = "Sign in"
    access = {"whoami": MEMBER.for_keys(), "effective_permissions": MEMBER.for_keys()}
    response_serializers = {
        "whoami": WhoamiSerializer,
        "effective_permissions": PermissionsSerializer,
    }

    @extend_schema(summary="Who am I")
    @action(detail=False)
    def whoami(self, request: Request) -> Response:
        """Return user, organization, environment, roles, labels and assurance."""
        return self.respond(self.principal)

    @extend_schema(summary="Effective permissions")
    @action(detail=False, url_path="permissions/effective")
    def effective_permissions(self, request: Request) -> Response:
        """Return the actions on each resource that the caller's roles allow together.

        For an API key, limited by its scopes.
        """
        roles, scopes = self.principal.roles, self.principal.scopes
        return self.respond({"roles": roles, "permissions": effective(roles, scopes)})
