"""``/v1/sign-in-providers``."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.viewsets import PlatformViewSet
from common.permissions import needs
from oauth import provider_use
from oauth.serializers import ProviderUseSerializer


class ProviderUseViewSet(PlatformViewSet):
    """The sign-in providers and their use, for an organization's admins."""

    access = {"list": needs("members", "read")}
    serializer_class = ProviderUseSerializer
    pagination_class = None

    @extend_schema(summary="List sign-in providers", operation_id="sign_in_providers_list")
    def list(self, request: Request) -> Response:
        """List the providers that are configured, and the members who use them.

        A provider that is no longer configured is listed while members are linked to it; they
        cannot sign in with it.
        """
        return self.respond({"providers": provider_use.used_in(self.principal.organization_id)})
