"""Development tokens: ``<service>_dev_<hmac>``, all of one organization, never in production.

Production is looked for in the environment at each verification, not only at start: a token that
worked yesterday must not work in a process that was told later where it runs.
"""

import hmac
import os
from typing import Final

from django.conf import settings

from accounts.errors import DevTokenRefused
from environments.models import Environment
from platform_site.env import is_production
from platform_site.lib.crypto import keyed_digest
from platform_site.lib.errors import TokenInvalid
from platform_site.lib.principals import PlatformRequest, Principal

MARK: Final = "_dev_"


def is_refused() -> bool:
    """Say whether this process runs in production."""
    return settings.IS_PRODUCTION or is_production(os.environ)


def token_for(organization_id: int) -> str:
    """Give the development token of an organization; the secret must be set."""
    digest = keyed_digest(
        settings.ACCOUNTS.dev_secret, "development token", settings.SERVICE_NAME, organization_id
    )
    return f"{settings.SERVICE_NAME}{MARK}{digest.hex()}"


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Give the synthetic admin of the configured organization, None for another kind of token.

    Acts in ``live``, or in the environment that ``X-Environment`` names.
    Raises DevTokenRefused in production, whatever the token; TokenInvalid for a wrong one, and
    for an unknown environment.
    """
    if not token.startswith(f"{settings.SERVICE_NAME}{MARK}"):
        return None
    if is_refused():
        raise DevTokenRefused
    if not (settings.ACCOUNTS.dev_org_id and settings.ACCOUNTS.dev_secret):
        raise TokenInvalid
    if not hmac.compare_digest(token.encode(), token_for(settings.ACCOUNTS.dev_org_id).encode()):
        raise TokenInvalid
    wanted = request.headers.get("X-Environment", "live").replace("\0", "")
    environment = (
        Environment.scoped.within_organization(settings.ACCOUNTS.dev_org_id)
        .select_related("organization")
        .filter(slug=wanted, deleted_at=None)
        .first()
    )
    if environment is None:
        raise TokenInvalid("X-Environment names no environment of this organization.")
    return Principal(
        kind="dev",
        user_id=None,
        email=None,
        organization_id=environment.organization_id,
        organization_name=environment.organization.name,
        environment_pk=environment.pk,
        environment_id=environment.slug,
        environment_name=environment.name,
        roles=("admin",),
        labels=(),
        session_id=None,
        aal=1,
        amr=("dev",),
        auth_time=None,
        access_expires_at=None,
    )
