"""The second factor as a login stage of every sign-in method."""

from typing import Any

from accounts.signin.signin import SignInAttempt, StageResponse
from common.principals import PlatformRequest
from environments import models
from environments.models import Organization
from twofactor import registry
from twofactor.factors import holdings
from twofactor.factors.holdings import Holdings
from twofactor.sign_in import pending
from twofactor.trusted_devices import devices


def second_factor(request: PlatformRequest, attempt: SignInAttempt) -> StageResponse | None:
    """Stop a sign-in that requires a second factor, or that has to set one up first."""
    if attempt.mfa_method:
        return _enforce_policy(attempt, attempt.user.organization)
    user_holdings = holdings.holdings_of(attempt.user.pk)
    if user_holdings.must_enrol and not user_holdings.proper:
        return _ask_to_enrol(attempt, user_holdings.policy)
    if not user_holdings.proper:
        return _enforce_policy(attempt, user_holdings.policy)
    return (
        None
        if devices.skip_second_factor(request, attempt, user_holdings)
        else _ask(attempt, user_holdings)
    )


def _enforce_policy(attempt: SignInAttempt, organization: Organization) -> StageResponse | None:
    """Allow a sign-in that satisfies the policy; warn within the grace period, stop after it."""
    is_shown = attempt.mfa_method and attempt.mfa_is_allowed
    if is_shown or not organization.mfa_required:
        return None
    ends = models.second_factor_deadline(
        organization.mfa_required_since,
        organization.mfa_grace_period_days,
        member_since=attempt.user.created_at,
    )
    if attempt.now < ends:
        warning = {"code": "mfa_enrollment_due", "deadline": int(ends.timestamp())}
        attempt.warnings.append(warning)
        return None
    return _ask_to_enrol(attempt, organization)


def _ask_to_enrol(attempt: SignInAttempt, organization: Organization) -> StageResponse | None:
    """Stop until a factor is set up; return None if the policy allows no method."""
    allowed = [name for name in organization.mfa_allowed_methods if name != "backup_codes"]
    if not allowed:
        return None
    waiting = _open(attempt, pending.ENROL)
    return StageResponse(
        {"status": "mfa_enrollment_required", **waiting, "allowed_methods": allowed}
    )


def _ask(attempt: SignInAttempt, user_holdings: Holdings) -> StageResponse:
    default = user_holdings.default_method
    offered = [
        {
            "method": registry.factor_of(method).type.challenge_name,
            "label": _label(user_holdings, method),
            "default": method == default,
        }
        for method in user_holdings.askable
    ]
    waiting = _open(attempt, pending.CHALLENGE)
    return StageResponse(
        {
            "status": "mfa_required",
            **waiting,
            "methods": offered,
            "trusted_device_allowed": True,
        }
    )


def _label(user_holdings: Holdings, method: str) -> str:
    hint = user_holdings.factors[method].hint
    label = registry.factor_of(method).type.label
    return f"{label} {hint}" if hint else label


def _open(attempt: SignInAttempt, use: str) -> dict[str, Any]:
    waiting = pending.open_pending(
        attempt.user, attempt.environment, use=use, amr=attempt.amr, now=attempt.now
    )
    return {
        "mfa_token": pending.token_for(waiting),
        "mfa_expires_at": int(waiting.expires_at.timestamp()),
    }
