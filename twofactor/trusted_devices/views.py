"""``/v1/auth/2fa/trusted-devices``."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.viewsets import ListAction
from common.openapi import shapes
from common.permissions import USER
from twofactor.audit_tags import TwoFactorTag
from twofactor.errors import DeviceNotFound
from twofactor.models import TrustedDevice
from twofactor.trusted_devices import devices


class TrustedDeviceSerializer(serializers.Serializer[Any]):
    """A trusted device; times in Unix seconds."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    created_at = serializers.SerializerMethodField()
    last_used_at = serializers.SerializerMethodField()
    expires_at = serializers.SerializerMethodField()

    def get_created_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.created_at.timestamp())

    def get_last_used_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.last_used_at.timestamp())

    def get_expires_at(self, row: Any) -> int:
        """Return Unix seconds."""
        return int(row.expires_at.timestamp())


@extend_schema_view(
    list=extend_schema(
        operation_id="trusted_devices_list",
        summary="List trusted devices",
        description="List the devices that skip the second factor at login.",
    )
)
class TrustedDeviceViewSet(ListAction):
    """The caller's trusted devices."""

    tag = "Second factor"
    access = {"list": USER, "destroy": USER}
    errors = {"destroy": (DeviceNotFound,)}
    serializer_class = TrustedDeviceSerializer
    lookup_url_kwarg = "device_id"
    path_schemas = {"device_id": shapes.UUID}

    def get_queryset(self) -> QuerySet[TrustedDevice]:
        """Return the caller's devices that have not expired."""
        rows = TrustedDevice.objects.all()
        return rows.filter(user_id=self.principal.user_id, expires_at__gt=timezone.now())

    @extend_schema(summary="Remove a trusted device")
    def destroy(self, request: Request, device_id: str) -> Response:
        """Delete a device; its next login requires the second factor."""
        who = self.principal
        with transaction.atomic():
            devices.remove(who.own_id, who.organization_id, device_id)
            trail.record_request(
                self.platform_request, TwoFactorTag.TRUSTED_DEVICE_DELETE, device=device_id
            )
        return self.no_content()
