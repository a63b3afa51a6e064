"""``/v1/auth/2fa/sms/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import USER
from twofactor import sent_codes
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
from twofactor.sms import enrolment
from twofactor.sms.serializers import (
    SmsSetupAnswerSerializer,
    SmsSetupSerializer,
    SmsVerifySerializer,
)


class SmsViewSet(PlatformViewSet):
    """Enrolment of SMS as a factor."""

    tag = "Second factor"
    access = {
        "set_up": USER.or_pending("enrol").fresh(),
        "verify": USER.or_pending("enrol").fresh(),
    }
    errors = {
        "set_up": (FactorNotAllowed, SendingTooOften, ChannelUnavailable),
        "verify": (MalformedCode, CodeRejected, FactorNotAllowed, EnrolmentGone, FactorSlowed),
    }
    request_serializers = {"set_up": SmsSetupSerializer, "verify": SmsVerifySerializer}
    response_serializers = {"set_up": SmsSetupAnswerSerializer, "verify": EnrolledSerializer}

    @extend_schema(summary="Set up SMS")
    @action(detail=False, methods=["post"], url_path="setup")
    def set_up(self, request: Request) -> Response:
        """Send a code; the factor is active after its verification."""
        answer = enrolment.setup(
            self.platform_request, self.principal, **self.read(), now=timezone.now()
        )
        return self.respond(answer, headers=NO_STORE)

    @extend_schema(summary="Verify SMS")
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
