"""``/v1/auth/2fa/challenge``, ``…/{challenge_id}/verify``, ``/v1/auth/reauthenticate``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import (
    HashingBusy,
    InvalidCredentials,
    SessionRevoked,
    TokenSuperseded,
    TooManyAttempts,
)
from accounts.models import Session
from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.errors import TokenExpired, TokenInvalid
from common.openapi import shapes
from common.permissions import PUBLIC, USER
from twofactor.challenges import proving, step_up
from twofactor.challenges.serializers import (
    CHALLENGE_RESULT,
    ChallengeQuerySerializer,
    ChallengeSerializer,
    ChallengeVerifySerializer,
    ReauthenticateSerializer,
)
from twofactor.errors import (
    ChallengeGone,
    ChannelUnavailable,
    CodeRejected,
    FactorNotAllowed,
    FactorSlowed,
    FactorWornOut,
    MalformedCode,
    MalformedCredential,
    MethodNotEnabled,
    NoSecondFactor,
    SendingTooOften,
)
from twofactor.factors.contract import ChallengeAnswer


class ChallengeViewSet(PlatformViewSet):
    """Challenges for a sign-in or, for step-up, for a session."""

    tag = "Second factor"
    # The id of a challenge is the permission to answer it, so no header is needed.
    access = {
        "challenge": USER.or_pending("challenge").without_email(),
        "verify": PUBLIC,
    }
    errors = {
        "challenge": (
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            NoSecondFactor,
            FactorSlowed,
            SendingTooOften,
            ChannelUnavailable,
        ),
        "verify": (
            MalformedCode,
            MalformedCredential,
            CodeRejected,
            SessionRevoked,
            TokenSuperseded,
            TokenExpired,
            TokenInvalid,
            FactorWornOut,
            FactorNotAllowed,
            MethodNotEnabled,
            ChallengeGone,
            FactorSlowed,
            HashingBusy,
        ),
    }
    request_serializers = {"verify": ChallengeVerifySerializer}
    query_serializers = {"challenge": ChallengeQuerySerializer}
    response_serializers = {"challenge": ChallengeSerializer, "verify": CHALLENGE_RESULT}
    path_schemas = {"challenge_id": shapes.BASE64URL}

    @extend_schema(summary="Create a challenge")
    @action(detail=False)
    def challenge(self, request: Request) -> Response:
        """Return a challenge for a sign-in (`mfa_token`) or, for step-up, for the session.

        A repeated request within 30 seconds returns the same challenge and sends nothing again.
        """
        wanted = self.read_query().get("method", "")
        answer = proving.create(self.principal, wanted, now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Verify a challenge")
    @action(detail=False, methods=["post"], url_path="challenge/<str:challenge_id>/verify")
    def verify(self, request: Request, challenge_id: str) -> Response:
        """Exchange the answer for the token pair, or raise the session's assurance."""
        answer, now = ChallengeAnswer(**self.read()), timezone.now()
        done = proving.verify(self.platform_request, challenge_id, answer, now=now)
        if not isinstance(done, Session):
            return self.respond(done.answer, headers=NO_STORE)
        valid_until = int(now.timestamp()) + step_up.MAX_AGE_S
        verified = {"status": "verified", "aal": done.aal, "valid_until": valid_until}
        return self.respond(verified, headers=NO_STORE)


class ReauthenticationViewSet(PlatformViewSet):
    """Reauthentication with the password."""

    tag = "Sign in"
    access = {"reauthenticate": USER.always().without_email()}
    errors = {
        "reauthenticate": (InvalidCredentials, TooManyAttempts, HashingBusy),
    }
    request_serializers = {"reauthenticate": ReauthenticateSerializer}
    response_serializers = {"reauthenticate": None}

    @extend_schema(summary="Reauthenticate")
    @action(detail=False, methods=["post"])
    def reauthenticate(self, request: Request) -> Response:
        """Verify the password again: the recent proof of users without a second factor."""
        step_up.prove_password(
            self.platform_request, self.principal, **self.read(), now=timezone.now()
        )
        return self.no_content()
