"""Grants: a verified profile that a secret can be exchanged for, once.

A code is created by a callback and exchanged by the client. A link token is created by a conflict
and redeemed by the owner of the account.
"""

from datetime import datetime, timedelta
from typing import Final

from accounts.models import User
from common.one_time_secrets import decrypt_json, digest, encrypt_json, new_secret
from oauth.models import GrantKind, OAuthGrant, OAuthTransaction
from oauth.providers.profile import Profile

# For a person who is asked a question.
JOIN_CODE_LIFETIME: Final = timedelta(minutes=10)
CODE_LIFETIME: Final = timedelta(seconds=60)
LINK_TOKEN_LIFETIME: Final = timedelta(minutes=10)


def issue_code(transaction: OAuthTransaction, profile: Profile, *, now: datetime) -> str:
    """Return the one-time code of a transaction."""
    code = new_secret()
    grant = OAuthGrant(
        digest=digest(code),
        kind=GrantKind.CODE,
        provider=transaction.provider,
        encrypted_profile=encrypt_json(profile.as_json()),
        code_challenge=transaction.code_challenge,
        environment=transaction.environment,
        user_id=transaction.user_id,
        session_id=transaction.session_id,
        expires_at=now + CODE_LIFETIME,
    )
    grant.save(force_insert=True)
    return code


def issue_join_code(grant: OAuthGrant, *, now: datetime) -> tuple[str, datetime]:
    """Keep a used code's profile while its owner decides on an invitation; return code and expiry.

    The verifier of the first code is required again.
    """
    code = new_secret()
    kept = OAuthGrant(
        digest=digest(code),
        kind=GrantKind.CODE,
        provider=grant.provider,
        encrypted_profile=grant.encrypted_profile,
        code_challenge=grant.code_challenge,
        environment=grant.environment,
        expires_at=now + JOIN_CODE_LIFETIME,
    )
    kept.save(force_insert=True)
    return code, kept.expires_at


def issue_link_token(grant: OAuthGrant, user: User, *, now: datetime) -> tuple[str, datetime]:
    """Keep a code's profile for a user who has to sign in first; return the token and expiry."""
    token = new_secret()
    kept = OAuthGrant(
        digest=digest(token),
        kind=GrantKind.LINK,
        provider=grant.provider,
        encrypted_profile=grant.encrypted_profile,
        user=user,
        expires_at=now + LINK_TOKEN_LIFETIME,
    )
    kept.save(force_insert=True)
    return token, kept.expires_at


def redeem(kind: GrantKind, secret: str, *, now: datetime) -> OAuthGrant | None:
    """Use a secret up and return its grant, None without one; of concurrent calls one succeeds.

    Call inside a transaction: with its rollback the secret can be used again.
    """
    rows = OAuthGrant.objects.filter(pk=digest(secret), kind=kind, expires_at__gt=now)
    found = rows.select_for_update(of=("self",)).select_related("user").first()
    if found is None or not rows.delete()[0]:
        return None
    return found


def profile_of(grant: OAuthGrant) -> Profile:
    """Return the profile of a grant."""
    return Profile.from_json(decrypt_json(grant.encrypted_profile))
