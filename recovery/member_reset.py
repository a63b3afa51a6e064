"""An admin's reset of the second factors of a member who has lost them."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from audit import trail
from common.errors import NotFound
from common.principals import PlatformRequest, Principal
from recovery import channels
from recovery.audit_tags import RecoveryTag
from recovery.errors import OwnFactors
from recovery.steps import access_end
from twofactor.factors import active_factors, holdings


def reset_factors(
    request: PlatformRequest, principal: Principal, user_id: str, *, reason: str
) -> None:
    """Delete every second factor of a member and end the sessions; the password stays.

    The member is notified of the admin and the reason. Pending recoveries end with the factors.
    Raises NotFound (404) for an unknown member or one of another organization, OwnFactors (409).
    """
    key = _key(user_id)
    if key == principal.user_id:
        raise OwnFactors
    with transaction.atomic():
        members = User.objects.filter(organization_id=principal.organization_id)
        if not members.filter(pk=key).exists():
            raise NotFound
        user_holdings = holdings.holdings_of(key, lock=True)
        user = members.select_for_update(of=("self",)).get(pk=key)
        by = principal.email or "a development token"
        channels.notify(user, user_holdings, "factors_reset", by=by, reason=reason)
        number = active_factors.reset(user)
        access_end.end_access(user, reason="factors_reset", now=timezone.now())
        trail.record_request(
            request,
            RecoveryTag.MEMBER_RESET_FACTORS,
            member=str(key),
            email=user.email,
            factors=number,
            reason=reason,
        )


def _key(user_id: str) -> UUID:
    try:
        return UUID(user_id)
    except ValueError:
        raise NotFound from None
