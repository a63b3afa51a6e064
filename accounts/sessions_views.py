"""``/v1/auth/refresh``, ``/v1/auth/switch``, ``/v1/auth/logout``, ``/v1/auth/sessions``."""

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit_tags import AccountTag
from accounts.models import Session
from accounts.serializers import (
    RefreshTokenSerializer,
    ScopedTokenPairSerializer,
    SwitchSerializer,
    TokenPairSerializer,
)
from accounts.sessions import own_sessions, refresh, sessions
from accounts.sessions_serializers import SessionsEndedSerializer, SessionSerializer
from accounts.tokens import session_tokens
from audit import trail
from common.api.views import NO_STORE
from common.api.viewsets import ListAction, PlatformViewSet
from common.permissions import PUBLIC, USER


class RefreshTokenViewSet(PlatformViewSet):
    """Actions with a refresh token on its session."""

    access = {"refresh": PUBLIC, "switch": PUBLIC, "logout": PUBLIC}
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

    # Ending sessions only makes an account safer, so it requires no fresh proof.
    access = {"list": USER.always(), "destroy": USER.always(), "destroy_all": USER.always()}
    serializer_class = SessionSerializer
    response_serializers = {"destroy_all": SessionsEndedSerializer}
    lookup_url_kwarg = "session_id"

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
