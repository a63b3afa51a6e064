"""``/v1/auth/2fa/email/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import USER
from twofactor import sent_codes
from twofactor.email import enrolment
from twofactor.email.serializers import (
    EmailSetupAnswerSerializer,
    EmailSetupSerializer,
    EmailVerifySerializer,
)
from twofactor.errors import (
    ChannelUnavailable,
    CodeRejected,
    EnrolmentGone,
    FactorNotAllowed,
    FactorSlowed,
    MalformedCode,
    SendingTooOften,
)
from twofactor.factors.serializers import EnrolledSerializer


class EmailViewSet(PlatformViewSet):
    """Enrolment of e-mail as a factor."""

    tag = "Second factor"
    access = {
        "set_up": USER.or_pending("enrol").fresh(),
        "verify": USER.or_pending("enrol").fresh(),
    }
    errors = {
        "set_up": (FactorNotAllowed, SendingTooOften, ChannelUnavailable),
        "verify": (MalformedCode, CodeRejected, FactorNotAllowed, EnrolmentGone, FactorSlowed),
    }
    request_serializers = {"set_up": EmailSetupSerializer, "verify": EmailVerifySerializer}
    response_serializers = {"set_up": EmailSetupAnswerSerializer, "verify": EnrolledSerializer}

    @extend_schema(summary="Set up e-mail")
    @action(detail=False, methods=["post"], url_path="setup")
    def set_up(self, request: Request) -> Response:
        """Send a code; the factor is active after its verification."""
        self.read()
        answer = enrolment.setup(self.platform_request, self.principal, now=timezone.now())
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Verify e-mail")
    @action(detail=False, methods=["post"])
    def verify(self, request: Request) -> Response:
        """Activate the factor with the code that was sent."""
        answer = sent_codes.verify(
            self.platform_request,
            self.principal,
            enrolment.CHANNEL,
            **self.read(),
            now=timezone.now(),
        )
        return self.respond(answer, headers=NO_STORE)
