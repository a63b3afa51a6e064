"""``/v1/auth/2fa/email/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.permissions import USER
from twofactor import sent_codes
from twofactor.email import enrolment
from twofactor.email.serializers import (
    EmailSetupAnswerSerializer,
    EmailSetupSerializer,
    EmailVerifySerializer,
)
from twofactor.serializers import EnrolledSerializer


class EmailSetupView(ApiView):
    """Begin to set up e-mail."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Set up e-mail", request=EmailSetupSerializer, responses=EmailSetupAnswerSerializer
    )
    def post(self, request: Request) -> Response:
        """Send a code; nothing is active before it was verified."""
        self.read(EmailSetupSerializer)
        answer = enrolment.setup(self.platform_request, self.principal, now=timezone.now())
        return Response(answer, headers=NO_STORE)


class EmailVerifyView(ApiView):
    """Activate e-mail."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Verify e-mail", request=EmailVerifySerializer, responses=EnrolledSerializer
    )
    def post(self, request: Request) -> Response:
        """Activate the factor with the code that was sent."""
        body = self.read(EmailVerifySerializer)
        answer = sent_codes.verify(
            self.platform_request,
            self.principal,
            enrolment.CHANNEL,
            verification_id=body["verification_id"],
            code=body["code"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)
