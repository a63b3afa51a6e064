"""``/v1/auth/2fa/totp/*``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from platform_site.lib.api import NO_STORE, ApiView
from platform_site.lib.permissions import USER
from twofactor.totp import enrolment
from twofactor.totp.serializers import (
    TotpSetupAnswerSerializer,
    TotpSetupSerializer,
    TotpVerifyAnswerSerializer,
    TotpVerifySerializer,
)


class TotpSetupView(ApiView):
    """Set up an authenticator app."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Set up TOTP", request=TotpSetupSerializer, responses=TotpSetupAnswerSerializer
    )
    def post(self, request: Request) -> Response:
        """Give a seed and its QR code; nothing is active before a code was verified."""
        body = self.read(TotpSetupSerializer)
        answer = enrolment.setup(
            self.principal,
            issuer=body["issuer"],
            account_name=body["account_name"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)


class TotpVerifyView(ApiView):
    """Activate an authenticator app."""

    access = {"POST": USER.or_pending("enrol").fresh()}

    @extend_schema(
        summary="Verify TOTP", request=TotpVerifySerializer, responses=TotpVerifyAnswerSerializer
    )
    def post(self, request: Request) -> Response:
        """Activate TOTP with its first code; backup codes are returned only here."""
        body = self.read(TotpVerifySerializer)
        answer = enrolment.verify(
            self.platform_request,
            self.principal,
            secret_id=body["secret_id"],
            code=body["code"],
            now=timezone.now(),
        )
        return Response(answer, headers=NO_STORE)
