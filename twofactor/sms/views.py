"""``/v1/auth/2fa/sms/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.permissions import USER
from twofactor import sent_codes
from twofactor.serializers import EnrolledSerializer
from twofactor.sms import enrolment
from twofactor.sms.serializers import (
    SmsSetupAnswerSerializer,
    SmsSetupSerializer,
    SmsVerifySerializer,
)


class SmsSetupView(ApiView):
    """Begin to set up SMS."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Set up SMS", request=SmsSetupSerializer, responses=SmsSetupAnswerSerializer
    )
    def post(self, request: Request) -> Response:
        """Send a code; nothing is active before it was verified."""
        body = self.read(SmsSetupSerializer)
        answer = enrolment.setup(
            self.platform_request,
            self.principal,
            phone_number=body["phone_number"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)


class SmsVerifyView(ApiView):
    """Activate SMS."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(summary="Verify SMS", request=SmsVerifySerializer, responses=EnrolledSerializer)
    def post(self, request: Request) -> Response:
        """Activate the factor with the code that was sent."""
        body = self.read(SmsVerifySerializer)
        answer = sent_codes.verify(
            self.platform_request,
            self.principal,
            enrolment.CHANNEL,
            verification_id=body["verification_id"],
            code=body["code"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)
