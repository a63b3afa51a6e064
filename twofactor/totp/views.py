"""``/v1/auth/2fa/totp/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import USER
from twofactor.errors import (
    CodeRejected,
    EnrolmentGone,
    EnrolmentTooOften,
    FactorNotAllowed,
    FactorSlowed,
    MalformedCode,
)
from twofactor.totp import enrolment
from twofactor.totp.serializers import (
    TotpSetupAnswerSerializer,
    TotpSetupSerializer,
    TotpVerifyAnswerSerializer,
    TotpVerifySerializer,
)


class TotpViewSet(PlatformViewSet):
    """Enrolment of an authenticator app."""

    tag = "Second factor"
    access = {
        "set_up": USER.or_pending("enrol").fresh(),
        "verify": USER.or_pending("enrol").fresh(),
    }
    errors = {
        "set_up": (FactorNotAllowed, EnrolmentTooOften),
        "verify": (MalformedCode, CodeRejected, FactorNotAllowed, EnrolmentGone, FactorSlowed),
    }
    request_serializers = {"set_up": TotpSetupSerializer, "verify": TotpVerifySerializer}
    response_serializers = {
        "set_up": TotpSetupAnswerSerializer,
        "verify": TotpVerifyAnswerSerializer,
    }

    @extend_schema(summary="Set up TOTP")
    @action(detail=False, methods=["post"], url_path="setup")
    def set_up(self, request: Request) -> Response:
        """Return a seed and its QR code; the factor is active after a code was verified."""
        answer = enrolment.setup(self.principal, **self.read(), now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Verify TOTP")
    @action(detail=False, methods=["post"])
    def verify(self, request: Request) -> Response:
        """Activate TOTP with its first code; backup codes are returned only here."""
        answer = enrolment.verify(
            self.platform_request, self.principal, **self.read(), now=timezone.now()
        )
        return self.respond(answer, headers=NO_STORE)
