"""Development tokens: ``<service>_dev_<hmac>``, for one organization, never in production.

Each verification checks the environment variables for production, not only the start: a token must
stop working in a process that detects production later.
"""

import hmac
import os
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet

from accounts.errors import DevTokenRefused
from common.crypto import keyed_digest
from common.database.prepared import PreparedQuery, parameter
from common.errors import TokenInvalid
from common.principals import PlatformRequest, Principal
from common.scoping import unscoped
from common.settings.env import is_production
from environments.models import Environment

MARK: Final = "_dev_"


@unscoped("the token says whose scope it is")
def _rows() -> QuerySet[Environment, dict[str, Any]]:
    """Return an environment of the organization."""
    found = Environment.objects.filter(
        organization_id=parameter(1, "bigint"), slug=parameter(2, "text"), deleted_at=None
    )
    return found.values("id", "slug", "name", "organization__name")


_QUERY: Final = PreparedQuery(_rows)


def is_refused() -> bool:
    """True if this process runs in production."""
    return settings.IS_PRODUCTION or is_production(os.environ)


def token_for(organization_id: int) -> str:
    """Return the development token of an organization; the secret must be set."""
    digest = keyed_digest(
        settings.ACCOUNTS.dev_secret, "development token", settings.SERVICE_NAME, organization_id
    )
    return f"{settings.SERVICE_NAME}{MARK}{digest.hex()}"


def authenticate(request: PlatformRequest, token: str) -> Principal | None:
    """Return the synthetic admin of the configured organization, None for another kind of token.

    It acts in ``live``, or in the environment in ``X-Environment``.
    Raises DevTokenRefused for every development token in production; TokenInvalid for a wrong token
    and for an unknown environment.
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
    organization_id = settings.ACCOUNTS.dev_org_id
    row = _QUERY.row(str(organization_id).encode(), wanted.encode())
    if row is None:
        raise TokenInvalid("X-Environment names no environment of this organization.")
    return Principal(
        kind="dev",
        user_id=None,
        email=None,
        organization_id=organization_id,
        organization_name=row["organization__name"],
        environment_pk=row["id"],
        environment_id=row["slug"],
        environment_name=row["name"],
        roles=("admin",),
        labels=(),
        session_id=None,
        aal=1,
        amr=("dev",),
        auth_time=None,
        access_expires_at=None,
    )
