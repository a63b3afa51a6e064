"""Failed authorization in the audit trail: denied requests within the caller's tenant."""

from datetime import timedelta
from typing import Final

from django.utils import timezone

from audit import trail
from audit.tags import TrailTag
from common import rate_limits
from common.principals import PlatformRequest

# A client that is refused in a loop must not fill the table.
PER_HOUR: Final = 60
HOUR: Final = timedelta(hours=1)


def record(request: PlatformRequest, *, resource: str, action: str) -> None:
    """Record that the request's principal lacked a permission (settings.DENIAL_RECORDER).

    At most sixty an hour for each user; for a development token, for its organization.
    """
    principal = request.principal
    if principal is None:
        return
    who = str(principal.actor_id or f"organization {principal.organization_id}")
    if rate_limits.take("denial", who, limit=PER_HOUR, window=HOUR, now=timezone.now()):
        return
    trail.add(
        request,
        TrailTag.PERMISSION_DENY,
        outcome="denied",
        organization_id=principal.organization_id,
        environment_id=principal.environment_id,
        actor_id=principal.actor_id,
        actor=principal.audit_name,
        data={
            "permission": f"{resource}:{action}",
            "method": request.method,
            "route": request.resolver_match.route if request.resolver_match else "",
        },
    )
