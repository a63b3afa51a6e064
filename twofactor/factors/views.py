"""``/v1/auth/2fa/factors``, ``…/status``, ``…/method/{method}``, ``…/default``."""

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NO_STORE
from common.api.viewsets import PlatformViewSet
from common.errors import NotFound
from common.permissions import PUBLIC, USER
from environments.models import MFA_METHODS
from oauth.errors import LastLoginMethod
from twofactor import registry
from twofactor.errors import FactorNotAllowed, MethodNotEnabled, RequiredByPolicy
from twofactor.factors import active_factors
from twofactor.factors.serializers import (
    DefaultMethodSerializer,
    FactorsSerializer,
    StatusSerializer,
)


class FactorViewSet(PlatformViewSet):
    """The supported factors, and the caller's."""

    tag = "Second factor"
    access = {
        "factors": PUBLIC,
        "status": USER.or_pending("challenge", "enrol").without_email(),
        "disable": USER.fresh().always(),
        "default": USER.fresh(),
    }
    errors = {
        "disable": (LastLoginMethod, MethodNotEnabled, RequiredByPolicy),
        "default": (FactorNotAllowed, MethodNotEnabled),
    }
    serializer_class = StatusSerializer
    request_serializers = {"default": DefaultMethodSerializer}
    response_serializers = {"disable": None, "factors": FactorsSerializer}

    @extend_schema(summary="List kinds of second factors")
    @action(detail=False)
    def factors(self, request: Request) -> Response:
        """List the kinds of second factors with their labels, in the order of offering them."""
        return self.respond({"factors": [factor.type for factor in registry.FACTORS]})

    @extend_schema(summary="2FA status")
    @action(detail=False)
    def status(self, request: Request) -> Response:
        """Return the caller's methods, the default one and the number of backup codes left."""
        return self.respond(active_factors.status_of(self.principal), headers=NO_STORE)

    @extend_schema(summary="Disable a method")
    @action(detail=False, methods=["delete"], url_path="method/<str:method>")
    def disable(self, request: Request, method: str) -> Response:
        """Remove a method, and delete the trusted devices."""
        if method not in MFA_METHODS:
            raise NotFound
        factor = registry.factor_of(method).type
        active_factors.disable(self.platform_request, self.principal, factor)
        return self.no_content()

    @extend_schema(summary="Set the default method")
    @action(detail=False, methods=["put"])
    def default(self, request: Request) -> Response:
        """Choose which of the enabled methods is offered first."""
        active_factors.prefer(self.platform_request, self.principal, self.read()["method"])
        return self.respond(active_factors.status_of(self.principal))
