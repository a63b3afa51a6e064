"""``/v1/auth/signup``, ``/v1/auth/login``."""

from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import InvalidCredentials
from accounts.serializers import (
    SIGN_IN_RESULT,
    LoginSerializer,
    SignupAnswerSerializer,
    SignupSerializer,
)
from accounts.signin import credentials, metrics, signin, signup
from accounts.signin.signin import SessionTokens, SignInAttempt, SignInMethod, StageResponse
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import PUBLIC


class SignInViewSet(PlatformViewSet):
    """Sign-up, and sign-in with e-mail and password."""

    access = {"signup": PUBLIC, "login": PUBLIC}
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
                source=signin.request_source(self.platform_request),
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
