"""The exchange of a one-time code for a session or a completed link.

Accounts are created, conflicts reported and the login stages run here and not in the callback: the
caller has the PKCE verifier, so the response goes to the client that started the transaction, and
not to someone who only saw the URL in the browser.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from accounts.audit_tags import AccountTag
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.reclaim import address_release
from accounts.sessions.sessions import SessionTokens
from accounts.signin import metrics, signin
from accounts.signin.signin import SignInAttempt, SignInMethod, StageResponse
from audit import trail
from common import one_time_secrets
from common.errors import PlatformError
from common.principals import PlatformRequest
from oauth import account_linking, account_matching
from oauth.account_linking import AccountLink
from oauth.account_matching import (
    AccountDisabled,
    AccountExists,
    InvitationChoice,
    InvitationUndecided,
)
from oauth.audit_tags import OAuthTag
from oauth.errors import (
    CodeGone,
    EmailMissing,
    EmailUnverified,
    IdentityRefused,
    IdentityTaken,
    InvitationOpen,
    LinkForeign,
    LinkRequired,
    ProviderUnavailable,
)
from oauth.flow import grants
from oauth.models import GrantKind, OAuthGrant
from oauth.providers.profile import Profile
from organizations.errors import InvitationGone
from organizations.models import Invitation

# RFC 8176 has no name for federated sign-in; others use this one.
AMR: Final = "fed"
# Another request may create the same identity or take the same address at the same moment.
MAX_TRIES: Final = 3
# These errors use the code up. Any other error changes nothing: the code can be used again.
REFUSALS: Final = (
    EmailMissing,
    EmailTaken,
    EmailUnverified,
    IdentityTaken,
    InvitationGone,
    LinkForeign,
    ProviderUnavailable,
    TooManyAttempts,
)

Outcome = SessionTokens | StageResponse | AccountLink


def exchange(
    request: PlatformRequest, code: str, verifier: str, *, choice: InvitationChoice, now: datetime
) -> Outcome:
    """Sign in or complete a link, once for each code.

    Raises CodeGone (410; a wrong verifier uses the code up), InvitationGone (410), LinkRequired,
    InvitationOpen, IdentityTaken, EmailTaken (409), EmailMissing, EmailUnverified, LinkForeign
    (403), IdentityRefused (401), EnvironmentNotFound (404: the code can still be used),
    TooManyAttempts (429), ProviderUnavailable (503).
    """
    for attempt in range(1, MAX_TRIES + 1):
        try:
            with transaction.atomic():
                outcome = _exchange(request, code, verifier, choice, now=now)
            break
        except IntegrityError as exc:
            if attempt == MAX_TRIES:
                # Not a race: the index considers two addresses equal that `find` does not.
                raise EmailTaken from exc
    # Raised outside the transaction, so that the code stays used and the audit event is kept.
    if isinstance(outcome, PlatformError):
        raise outcome
    return outcome


def _exchange(
    request: PlatformRequest, code: str, verifier: str, choice: InvitationChoice, *, now: datetime
) -> Outcome | PlatformError:
    grant = grants.redeem(GrantKind.CODE, code, now=now)
    if grant is None or not one_time_secrets.matches_challenge(verifier, grant.code_challenge):
        return CodeGone()
    profile = grants.profile_of(grant)
    try:
        # A refusal undoes what was changed before it, and only the code stays used.
        with transaction.atomic():
            if grant.user_id is not None:
                return account_linking.link_by_code(request, grant, profile, now=now)
            return _sign_in(request, grant, profile, choice, now=now)
    except InvitationUndecided as exc:
        # The code is replaced, so that its owner has the time to decide.
        return _invitation_open(grant, exc.invitations, now=now)
    except AccountExists as exc:
        refused: PlatformError = _link_required(grant, exc.user, now=now)
        user: User | None = exc.user
    except AccountDisabled as exc:
        refused, user = IdentityRefused(), exc.user
    except REFUSALS as exc:
        refused, user = exc, grant.user
    _record_refusal(request, grant, refused, user)
    metrics.REFUSED.labels(SignInMethod.EXTERNAL, refused.code).inc()
    return refused


def _sign_in(
    request: PlatformRequest,
    grant: OAuthGrant,
    profile: Profile,
    choice: InvitationChoice,
    *,
    now: datetime,
) -> SessionTokens | StageResponse:
    matched = account_matching.match(request, profile, choice, now=now)
    environment = signin.environment_for(matched.user, grant.environment)
    attempt = SignInAttempt(
        matched.user, environment, method=SignInMethod.EXTERNAL, amr=[AMR], now=now
    )
    if matched.is_moved:
        address_release.note_move(attempt)
    return signin.finish(request, attempt)


def _invitation_open(
    grant: OAuthGrant, invitations: Sequence[Invitation], *, now: datetime
) -> InvitationOpen:
    """Return the question which invitation to accept, with a code to answer it."""
    code, expires_at = grants.issue_join_code(grant, now=now)
    offers = [
        {
            "id": str(each.pk),
            "organization": each.organization.name,
            "roles": each.roles,
            "invited_by": each.inviter_email(),
        }
        for each in invitations
    ]
    return InvitationOpen(
        "Accept it, or go on without it.",
        extra={
            "join_code": code,
            "join_expires_at": int(expires_at.timestamp()),
            "invitations": offers,
        },
    )


def _link_required(grant: OAuthGrant, user: User, *, now: datetime) -> LinkRequired:
    """Return the conflict, with the token that links the two once the owner has signed in."""
    token, expires_at = grants.issue_link_token(grant, user, now=now)
    return LinkRequired(
        "Sign in to it and link the two; then you can sign in with either.",
        extra={
            "provider": grant.provider,
            "link_token": token,
            "link_expires_at": int(expires_at.timestamp()),
        },
    )


def _record_refusal(
    request: PlatformRequest, grant: OAuthGrant, refused: PlatformError, user: User | None
) -> None:
    trail.add(
        request,
        AccountTag.SESSION_CREATE if grant.user_id is None else OAuthTag.IDENTITY_CREATE,
        outcome="refused",
        organization_id=user.organization_id if user is not None else None,
        actor_id=user.pk if user is not None else None,
        actor=str(user) if user is not None else "",
        data={
            "method": str(SignInMethod.EXTERNAL),
            "provider": grant.provider,
            "error": refused.code,
        },
    )
