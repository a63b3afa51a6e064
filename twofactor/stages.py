"""The second factor as a stage of every way in (settings.LOGIN_STAGES)."""

from typing import Any

from accounts import policy
from accounts.signin import Attempt, Halted
from platform_site.lib.principals import PlatformRequest
from twofactor import devices, methods, pending
from twofactor.methods import Holdings


def second_factor(request: PlatformRequest, attempt: Attempt) -> Halted | None:
    """Halt a sign-in whose second factor is due, or that has to set one up first."""
    held = methods.holdings_of(attempt.user.pk)
    if held.proper and not attempt.mfa_method:
        if devices.passes(request, attempt, held):
            return None
        return _ask(attempt, held)
    return _hold_to_policy(attempt, held)


def _hold_to_policy(attempt: Attempt, held: Holdings) -> Halted | None:
    """Let through what the policy is content with; warn within the grace, halt after it."""
    if not held.policy.mfa_required or (attempt.mfa_method and attempt.mfa_is_allowed):
        return None
    ends = policy.deadline(
        held.policy.mfa_required_since,
        held.policy.mfa_grace_period_days,
        member_since=held.member_since,
    )
    if attempt.now < ends:
        warning = {"code": "mfa_enrollment_due", "deadline": int(ends.timestamp())}
        attempt.warnings.append(warning)
        return None
    waiting = _open(attempt, pending.ENROL)
    allowed = [name for name in held.policy.mfa_allowed_methods if name != "backup_codes"]
    return Halted({"status": "mfa_enrollment_required", **waiting, "allowed_methods": allowed})


def _ask(attempt: Attempt, held: Holdings) -> Halted:
    default = held.default_method
    offered = [
        {
            "method": methods.spelled_in_challenges(method),
            "label": _label(held, method),
            "default": method == default,
        }
        for method in held.askable
    ]
    waiting = _open(attempt, pending.CHALLENGE)
    return Halted(
        {
            "status": "mfa_required",
            **waiting,
            "methods": offered,
            "trusted_device_allowed": True,
        }
    )


def _label(held: Holdings, method: str) -> str:
    hint = held.factors[method].hint
    label = methods.LABELS[method]
    return f"{label} {hint}" if hint else label


def _open(attempt: Attempt, use: str) -> dict[str, Any]:
    waiting = pending.open_pending(
        attempt.user, attempt.environment, use=use, amr=attempt.amr, now=attempt.now
    )
    return {
        "mfa_token": pending.token_for(waiting),
        "mfa_expires_at": int(waiting.expires_at.timestamp()),
    }
