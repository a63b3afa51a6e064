"""A one-time code exchanged by the client that began: for a session, or for a finished link.

Here accounts are made, conflicts told and the login gate passed: the caller holds the verifier, so
the answer goes to whoever began and to nobody who only saw the browser's address line.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction

from accounts.audit import audit
from accounts.errors import EmailTaken, TooManyAttempts
from accounts.models import User
from accounts.oauth import account_matching, identities
from accounts.oauth.account_matching import AccountDisabled, AccountThere
from accounts.oauth.errors import (
    CodeGone,
    EmailMissing,
    EmailUnverified,
    IdentityRefused,
    IdentityTaken,
    LinkForeign,
    ProviderUnavailable,
)
from accounts.oauth.models import Identity, ProviderGrant
from accounts.oauth.providers.profile import Profile
from accounts.oauth.secrets import digest, fits, new_secret, unseal
from accounts.signin import signin
from accounts.signin.signin import Attempt, Halted, SignedIn, Way
from platform_site.lib.errors import NotAuthenticated, PlatformError
from platform_site.lib.principals import PlatformRequest, Principal

LINK_LIFE: Final = timedelta(minutes=10)
# RFC 8176 has no name for it; this is what others call a sign-in that somebody else vouches for.
AMR: Final = "fed"
# Somebody else made the same identity or took the same address in the same moment.
TRIES: Final = 3
# They use the code up. Whatever else is raised leaves it, and nothing else, as it was.
REFUSALS: Final = (
    EmailMissing,
    EmailTaken,
    EmailUnverified,
    IdentityTaken,
    LinkForeign,
    ProviderUnavailable,
    TooManyAttempts,
)


@dataclass(frozen=True, slots=True)
class Linked:
    """A link that is finished."""

    identity: Identity


Outcome = SignedIn | Halted | Linked


def exchange(request: PlatformRequest, code: str, verifier: str, *, now: datetime) -> Outcome:
    """Sign in or finish a link, once for each code.

    Raises CodeGone (410; a wrong verifier uses the code up), LinkRequired, IdentityTaken,
    EmailTaken (409), EmailMissing, EmailUnverified, LinkForeign (403), IdentityRefused (401),
    EnvironmentNotFound (404: the code can still be used), TooManyAttempts (429),
    ProviderUnavailable (503).
    """
    for attempt in range(1, TRIES + 1):
        try:
            with transaction.atomic():
                outcome = _exchange(request, code, verifier, now=now)
            break
        except IntegrityError as exc:
            if attempt == TRIES:
                # Not by haste, then: what the index holds to be one address, `find` did not.
                raise EmailTaken from exc
    # Raised outside of the transaction: the code stays used, and the audit trail keeps the refusal.
    if isinstance(outcome, PlatformError):
        raise outcome
    return outcome


def _exchange(
    request: PlatformRequest, code: str, verifier: str, *, now: datetime
) -> Outcome | PlatformError:
    grant = take(ProviderGrant.Kind.CODE, code, now=now)
    if grant is None or not fits(verifier, grant.code_challenge):
        return CodeGone()
    profile = Profile.from_json(unseal(grant.profile))
    try:
        if grant.user_id is not None:
            return _finish_link(request, grant, profile, now=now)
        return _sign_in(request, grant, profile, now=now)
    except AccountThere as exc:
        refused: PlatformError = _ask_for_link(exc.user, grant, now=now)
        user: User | None = exc.user
    except AccountDisabled as exc:
        refused, user = IdentityRefused(), exc.user
    except REFUSALS as exc:
        refused, user = exc, grant.user
    _note_refused(request, grant, refused, user)
    return refused


def take(kind: ProviderGrant.Kind, secret: str, *, now: datetime) -> ProviderGrant | None:
    """Give what a secret stands for and use it up; of parallel takers one gets it."""
    rows = ProviderGrant.objects.filter(pk=digest(secret), kind=kind, expires_at__gt=now)
    found = rows.select_for_update(of=("self",)).select_related("user").first()
    if found is None or not rows.delete()[0]:
        return None
    return found


def link_by_token(
    request: PlatformRequest, principal: Principal, provider: str, token: str, *, now: datetime
) -> Linked:
    """Link what a sign-in could not be matched with, now that the account's owner is here.

    Raises CodeGone (410), LinkForeign (403) for another user than the one the conflict was with,
    IdentityTaken (409).
    """
    with transaction.atomic():
        grant = take(ProviderGrant.Kind.LINK, token, now=now)
        if grant is None or grant.user is None or grant.provider != provider:
            raise CodeGone
        if grant.user_id != principal.own_id:
            raise LinkForeign
        profile = Profile.from_json(unseal(grant.profile))
        user = account_matching.lock(grant.user)
        return Linked(identities.attach(request, user, profile, now=now))


def _sign_in(
    request: PlatformRequest, grant: ProviderGrant, profile: Profile, *, now: datetime
) -> SignedIn | Halted:
    arrived = account_matching.arrive(request, profile, now=now)
    place = signin.environment_for(arrived.user, grant.environment)
    attempt = Attempt(arrived.user, place, way=Way.EXTERNAL, amr=[AMR], now=now)
    if arrived.is_reclaimed:
        attempt.warnings.append({"code": "account_reclaimed"})
    return signin.finish(request, attempt)


def _finish_link(
    request: PlatformRequest, grant: ProviderGrant, profile: Profile, *, now: datetime
) -> Linked:
    principal = request.principal
    if principal is None:
        # Not among the refusals: who has to refresh first finds the code unused.
        raise request.principal_error or NotAuthenticated
    if grant.user is None or principal.session_id is None:
        raise LinkForeign
    if (principal.own_id, principal.session_id) != (grant.user_id, grant.session_id):
        raise LinkForeign
    user = account_matching.lock(grant.user)
    return Linked(identities.attach(request, user, profile, now=now))


def _ask_for_link(user: User, grant: ProviderGrant, *, now: datetime) -> PlatformError:
    """Keep the proven identity for the account's owner, who has to sign in first."""
    token = new_secret()
    kept = ProviderGrant(
        digest=digest(token),
        kind=ProviderGrant.Kind.LINK,
        provider=grant.provider,
        profile=grant.profile,
        user=user,
        expires_at=now + LINK_LIFE,
    )
    kept.save(force_insert=True)
    return account_matching.link_required(grant.provider, token, kept.expires_at)


def _note_refused(
    request: PlatformRequest, grant: ProviderGrant, refused: PlatformError, user: User | None
) -> None:
    audit.add(
        request,
        "api:session:create" if grant.user_id is None else "api:identity:create",
        outcome="refused",
        organization_id=user.organization_id if user is not None else None,
        actor_id=user.pk if user is not None else None,
        actor=str(user) if user is not None else "",
        data={"way": str(Way.EXTERNAL), "provider": grant.provider, "error": refused.code},
    )
