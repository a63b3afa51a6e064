"""``/v1/auth/*``, ``/v1/whoami``, ``/v1/permissions/effective``."""

from functools import partial

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import audit
from accounts.errors import InvalidCredentials
from accounts.serializers import (
    SIGN_IN_RESULT,
    LoginSerializer,
    PermissionsSerializer,
    RefreshTokenSerializer,
    ScopedTokenPairSerializer,
    SignupAnswerSerializer,
    SignupSerializer,
    SwitchSerializer,
    TokenPairSerializer,
    WhoamiSerializer,
)
from accounts.sessions import refresh, sessions
from accounts.signin import credentials, signin, signup
from accounts.signin.signin import Attempt, SignedIn, Way
from accounts.tokens import tokens
from platform_site.lib.addresses import client_address
from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.permissions import MEMBER, PUBLIC, effective


class SignupView(ApiView):
    """Sign-up."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Sign up", request=SignupSerializer, responses={201: SignupAnswerSerializer}
    )
    def post(self, request: Request) -> Response:
        """Make an organization with `live` and `sandbox`, its first admin, and a session."""
        body = self.read(SignupSerializer)
        done = signup.sign_up(
            self.platform_request,
            body["email"],
            body["password"],
            organization=body["organization"],
            now=timezone.now(),
        )
        # Nobody has a second factor yet, and the policy of a new organization asks for none.
        answer = done.pair() | done.extra if isinstance(done, SignedIn) else done.answer
        return Response(answer, status=status.HTTP_201_CREATED, headers=NO_STORE)


class LoginView(ApiView):
    """Login with e-mail and password."""

    access = {"POST": PUBLIC}

    @extend_schema(summary="Log in", request=LoginSerializer, responses=SIGN_IN_RESULT)
    def post(self, request: Request) -> Response:
        """Open a session in an environment: the one named, else the last used, else `live`."""
        body = self.read(LoginSerializer)
        now = timezone.now()
        try:
            user = credentials.verify(
                body["email"],
                body["password"],
                address=client_address(self.platform_request),
                now=now,
                vouch=partial(signin.is_vouched, self.platform_request, now=now),
            )
        except InvalidCredentials:
            signin.note_refused(self.platform_request, body["email"])
            raise
        place = signin.environment_for(user, body["environment"])
        attempt = Attempt(user, place, way=Way.PASSWORD, amr=["pwd"], now=now)
        with transaction.atomic():
            done = signin.finish(self.platform_request, attempt)
        return Response(done.answer, headers=NO_STORE)


class RefreshView(ApiView):
    """Refresh."""

    access = {"POST": PUBLIC}

    @extend_schema(summary="Refresh", request=RefreshTokenSerializer, responses=TokenPairSerializer)
    def post(self, request: Request) -> Response:
        """Exchange a refresh token for a new pair; replaying a used one ends the sign-in."""
        body = self.read(RefreshTokenSerializer)
        done = refresh.refresh(self.platform_request, body["refresh_token"], now=timezone.now())
        pair = tokens.pair_for(done.session, done.environment)
        return Response(pair.as_json(), headers=NO_STORE)


class SwitchView(ApiView):
    """Switch environment."""

    access = {"POST": PUBLIC}

    @extend_schema(
        summary="Switch environment",
        request=SwitchSerializer,
        responses=ScopedTokenPairSerializer,
    )
    def post(self, request: Request) -> Response:
        """Exchange a refresh token for a session in another environment of the organization."""
        body = self.read(SwitchSerializer)
        done = refresh.switch(
            self.platform_request,
            body["refresh_token"],
            environment=body["environment"],
            keep_current=body["keep_current"],
            now=timezone.now(),
        )
        return Response(done.pair(), headers=NO_STORE)


class LogoutView(ApiView):
    """Logout."""

    access = {"POST": PUBLIC}

    @extend_schema(summary="Log out", request=RefreshTokenSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """End the session of a refresh token, at once for its access tokens too."""
        body = self.read(RefreshTokenSerializer)
        now = timezone.now()
        pointer = tokens.read(body["refresh_token"], "rt+jwt", now=now, allow_expired=True)
        with transaction.atomic():
            session = sessions.end(pointer, now=now)
            if session is not None:
                audit.record_user(
                    self.platform_request,
                    "api:session:delete",
                    session.user,
                    session=str(session.id),
                )
        return Response(status=status.HTTP_204_NO_CONTENT, headers=NO_STORE)


class WhoamiView(ApiView):
    """Who the caller is, and where."""

    access = {"GET": MEMBER}

    @extend_schema(summary="Who am I", responses=WhoamiSerializer)
    def get(self, request: Request) -> Response:
        """Give user, organization, environment, roles, labels and assurance."""
        who = self.principal
        return Response(
            {
                "user_id": who.user_id,
                "email": who.email,
                "email_verified": who.email_verified,
                "org_id": who.organization_id,
                "organization": who.organization_name,
                "environment": {"id": who.environment_id, "name": who.environment_name},
                "roles": who.roles,
                "labels": who.labels,
                "session_id": who.session_id,
                "aal": who.aal,
                "amr": who.amr,
                "auth_time": who.auth_time,
                "access_expires_at": who.access_expires_at,
            }
        )


class EffectivePermissionsView(ApiView):
    """What the caller may do."""

    access = {"GET": MEMBER}

    @extend_schema(summary="Effective permissions", responses=PermissionsSerializer)
    def get(self, request: Request) -> Response:
        """Give the actions on each resource that the caller's roles allow together."""
        roles = self.principal.roles
        return Response({"roles": roles, "permissions": effective(roles)})
