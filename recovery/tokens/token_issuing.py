"""The second part of starting a recovery, run by a task: it differs if there is no account."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from accounts.models import User
from accounts.signin import credentials
from audit import trail
from recovery import channels, recovery_rows
from recovery.audit_tags import RecoveryTag
from recovery.models import Method, Purpose, Recovery
from recovery.tokens import channel_tokens
from twofactor.factors import holdings
from twofactor.factors.holdings import Holdings
from twofactor.stored_secrets import unseal


def resolve(key: UUID, *, now: datetime) -> None:
    """Send the token of a recovery to its account, once; without an account, nothing is sent.

    A recovery by security questions waits for right answers first.
    """
    with transaction.atomic():
        recovery = _lock(key, now)
        if recovery is None:
            return
        if recovery.method == Method.SECURITY_QUESTIONS and not recovery.is_answered:
            return
        claim = unseal(recovery.request)
        user = _claimed(claim)
        recovery.resolved_at, recovery.request = now, ""
        if user is not None:
            _issue(recovery, user, claim["recovery_id"], now)
        recovery.save()


def _lock(key: UUID, now: datetime) -> Recovery | None:
    rows = Recovery.objects.select_for_update()
    found: Recovery | None = rows.filter(
        pk=key, resolved_at=None, ended_at=None, expires_at__gt=now
    ).first()
    return found


def _claimed(claim: dict[str, Any]) -> User | None:
    """Return the active user with the claimed address in the claimed organization."""
    found = credentials.find(claim["email"])
    if found is None or claim["org_id"] not in {None, found.organization_id} or not found.is_active:
        return None
    return found


def _issue(recovery: Recovery, user: User, recovery_id: str, now: datetime) -> None:
    user_holdings = holdings.holdings_of(user.pk)
    to = channels.destination(user, user_holdings, channel=recovery.channel)
    if not to or not _can_be_completed(recovery, user_holdings):
        return
    recovery.user, recovery.organization_id = user, user.organization_id
    recovery.fingerprint = recovery_rows.fingerprint(user, user_holdings)
    token = channel_tokens.new_token(recovery.channel)
    if not channels.send_token(recovery, user, to, token, recovery_id=recovery_id, now=now):
        return
    recovery.token = channel_tokens.token_digest(recovery, token)
    if recovery.channel != "email":
        cancel = channel_tokens.long_token()
        recovery.cancel = channel_tokens.cancel_digest(cancel)
        channels.notify_with_cancel_link(user, user_holdings, cancel, **_origin(recovery))
    else:
        channels.notify(
            user, user_holdings, "recovery_started", except_address=user.email, **_origin(recovery)
        )
    trail.add(
        None,
        RecoveryTag.RECOVERY_CREATE,
        organization_id=user.organization_id,
        actor_id=user.pk,
        actor=user.email,
        address=recovery.address,
        agent=recovery.agent,
        data={"method": recovery.method, "purpose": recovery.purpose, "recovery": str(recovery.pk)},
    )


def _can_be_completed(recovery: Recovery, user_holdings: Holdings) -> bool:
    """True if the recovery can be completed.

    A lost second factor requires another channel than that factor's.
    """
    if recovery.purpose != Purpose.SECOND_FACTOR:
        return True
    return any(method != recovery.channel for method in user_holdings.proper)


def _origin(recovery: Recovery) -> dict[str, str]:
    return {"address": recovery.address, "agent": recovery.agent}
