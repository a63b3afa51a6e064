"""``/v1/auth/2fa/backup-codes``."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.permissions import USER
from twofactor.backup_codes.serializers import BackupCodesSerializer
from twofactor.errors import FactorNotAllowed, NoSecondFactor
from twofactor.factors import active_factors


class BackupCodeViewSet(PlatformViewSet):
    """The caller's backup codes."""

    tag = "Second factor"
    access = {"create": USER.fresh()}
    errors = {"create": (FactorNotAllowed, NoSecondFactor)}
    serializer_class = BackupCodesSerializer
    success_statuses = {"create": status.HTTP_200_OK}

    @extend_schema(summary="Generate backup codes", request=None)
    def create(self, request: Request) -> Response:
        """Return ten new codes, contained only in this response; earlier codes become invalid."""
        codes = active_factors.new_backup_codes(
            self.platform_request, self.principal, now=timezone.now()
        )
        return self.respond({"backup_codes": codes}, headers=NO_STORE)
