"""The errors of the second factor."""

from common.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from common.openapi import shapes


class MalformedCode(InvalidRequest):
    """The code has invalid characters or a wrong length for this method; it was not counted."""

    code = "malformed_code"
    title = "The code is malformed."


class MalformedCredential(MalformedCode):
    """The credential is not a `PublicKeyCredential` in JSON (`toJSON()`); it was not counted."""

    code = "malformed_credential"
    title = "The passkey's response is malformed."


class CodeRejected(NotAuthenticated):
    """The code is well-formed but wrong; the attempt was counted."""

    code = "invalid_code"
    title = "The code is wrong."


class ChallengeGone(Gone):
    """Unknown, expired, answered, or failed five times; the response does not say which."""

    code = "challenge_gone"
    title = "This challenge can no longer be answered."


class EnrolmentGone(Gone):
    """Unknown, expired, finished, or failed five times; the response does not say which."""

    code = "enrolment_gone"
    title = "This set-up can no longer be finished."


class EnrolmentTooOften(TooManyRequests):
    """The user has begun to set up this method thirty times within an hour."""

    code = "enrolment_too_often"
    title = "This set-up was begun too often."


class FactorSlowed(TooManyRequests):
    """Too many wrong codes for this factor."""

    code = "factor_slowed"
    title = "Too many wrong codes."


class SendingTooOften(TooManyRequests):
    """Codes were sent too often to this number or address."""

    code = "sending_too_often"
    title = "Too many codes were sent."


class FactorWornOut(Forbidden):
    """The factor is blocked after 100 consecutive wrong codes, and has to be set up again."""

    code = "factor_worn_out"
    title = "This factor must be set up again."


class StepUpRequired(Forbidden):
    """The second factor (or the password) must have been proven within the last 15 minutes."""

    code = "step_up_required"
    title = "Confirm that it is you."
    members = {"proof": shapes.TEXT, "max_age": shapes.COUNT}


class FactorNotAllowed(Forbidden):
    """The organization's policy does not allow this method."""

    code = "method_not_allowed_by_policy"
    title = "Your organization does not allow this method."


class MethodNotEnabled(Conflict):
    """The user has not set up this method."""

    code = "method_not_enabled"
    title = "This method is not set up."


class NoSecondFactor(Conflict):
    """The user has no second factor."""

    code = "no_second_factor"
    title = "There is no second factor."


class RequiredByPolicy(Conflict):
    """The last factor cannot be removed while the policy requires one."""

    code = "required_by_policy"
    title = "Your organization requires a second factor."


class PolicyLocksOut(Conflict):
    """The policy would lock out the organization's last admin."""

    code = "policy_locks_out"
    title = "This policy would lock you out."


class CredentialTaken(Conflict):
    """The passkey is registered already."""

    code = "credential_taken"
    title = "This passkey is registered already."


class TooManyPasskeys(Conflict):
    """A user can have at most twenty passkeys."""

    code = "too_many_passkeys"
    title = "Remove a passkey first."


class PasskeyRejected(NotAuthenticated):
    """Unknown, wrong, without user verification, or of a disabled user, which look the same."""

    code = "passkey_rejected"
    title = "This passkey cannot sign in here."


class PasskeyNotFound(NotFound):
    """The caller has no passkey with this id."""

    code = "passkey_not_found"
    title = "There is no such passkey."


class DeviceNotFound(NotFound):
    """The caller has no trusted device with this id."""

    code = "device_not_found"
    title = "There is no such device."


class ChannelUnavailable(Unavailable):
    """No provider is configured for this method; ``methods`` names the others."""

    code = "channel_unavailable"
    title = "Codes cannot be sent this way here."
    members = {"methods": shapes.TEXTS}
