"""Linking an account at a provider to an existing user, by a one-time code or a link token."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from common.errors import NotAuthenticated
from common.principals import PlatformRequest, Principal
from oauth import account_matching, identities
from oauth.errors import CodeGone, LinkForeign
from oauth.flow import grants
from oauth.models import GrantKind, Identity, OAuthGrant
from oauth.providers.profile import Profile


@dataclass(frozen=True, slots=True)
class AccountLink:
    """A completed link."""

    identity: Identity


def link_by_code(
    request: PlatformRequest, grant: OAuthGrant, profile: Profile, *, now: datetime
) -> AccountLink:
    """Complete a link that a session started; call inside a transaction.

    Raises NotAuthenticated (401), after which the code can still be used, LinkForeign (403) for
    another session than the one that started, IdentityTaken (409).
    """
    principal = request.principal
    if principal is None:
        # A client that has to refresh its token first finds the code unused.
        raise request.principal_error or NotAuthenticated
    if grant.user is None or principal.session_id is None:
        raise LinkForeign
    if (principal.own_id, principal.session_id) != (grant.user_id, grant.session_id):
        raise LinkForeign
    user = account_matching.lock(grant.user)
    return AccountLink(identities.attach(request, user, profile, now=now))


def link_by_token(
    request: PlatformRequest, principal: Principal, provider: str, token: str, *, now: datetime
) -> AccountLink:
    """Link the identity of a conflict, now that the account's owner has signed in.

    Raises CodeGone (410), LinkForeign (403) for another user than the one of the conflict,
    IdentityTaken (409).
    """
    with transaction.atomic():
        grant = grants.redeem(GrantKind.LINK, token, now=now)
        if grant is None or grant.user is None or grant.provider != provider:
            raise CodeGone
        if grant.user_id != principal.own_id:
            raise LinkForeign
        user = account_matching.lock(grant.user)
        return AccountLink(identities.attach(request, user, grants.profile_of(grant), now=now))
