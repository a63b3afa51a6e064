"""``/v1/whoami``, ``/v1/permissions/effective``."""

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.serializers import PermissionsSerializer, WhoamiSerializer
from common.api.viewsets import PlatformViewSet
from common.permissions import MEMBER, effective


class CallerViewSet(PlatformViewSet):
    """The caller's identity and permissions."""

    access = {"whoami": MEMBER.for_keys(), "effective_permissions": MEMBER.for_keys()}
    response_serializers = {
        "whoami": WhoamiSerializer,
        "effective_permissions": PermissionsSerializer,
    }

    @extend_schema(summary="Who am I")
    @action(detail=False)
    def whoami(self, request: Request) -> Response:
        """Return user, organization, environment, roles, labels and assurance."""
        return self.respond(self.principal)

    @extend_schema(summary="Effective permissions")
    @action(detail=False, url_path="permissions/effective")
    def effective_permissions(self, request: Request) -> Response:
        """Return the actions on each resource that the caller's roles allow together.

        For an API key, limited by its scopes.
        """
        roles, scopes = self.principal.roles, self.principal.scopes
        return self.respond({"roles": roles, "permissions": effective(roles, scopes)})
