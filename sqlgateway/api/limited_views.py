"""Views that apply the limits of the caller's organization."""

from typing import Any

from rest_framework.request import Request

from common.api.viewsets import PlatformViewSet
from common.principals import Principal
from sqlgateway.clusters.request_limits import NO_LIMITS
from sqlgateway.databases import provisioning


class LimitedViewSet(PlatformViewSet):
    """The base of SQL's viewsets. limits: the organization's, in actions that read a body."""

    limits = NO_LIMITS

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the limits after the permission check, and before the body."""
        super().initial(request, *args, **kwargs)
        if self.action in self.request_serializers:
            self.read_limits(self.principal)

    def read_limits(self, principal: Principal) -> None:
        """Set the limits, including the limit of the body."""
        self.limits = provisioning.limits_of(principal.scope)
        self.body_limit_bytes = self.limits.body_bytes(self.body_limit_bytes)
