"""The errors of recovery."""

from common.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    TooManyRequests,
)
from common.openapi import shapes


class MalformedRecoveryToken(InvalidRequest):
    """The token has invalid characters or a wrong length; it was not counted."""

    code = "malformed_recovery_token"
    title = "The recovery token is malformed."


class RecoveryTokenRejected(NotAuthenticated):
    """The token is well-formed but wrong; the attempt was counted."""

    code = "recovery_token_rejected"
    title = "The recovery token is wrong."


class RecoveryGone(Gone):
    """Unknown, expired, used, cancelled, failed five times, or the password has changed."""

    code = "recovery_gone"
    title = "This recovery can no longer be used."


class RecoveryTooOften(TooManyRequests):
    """Recovery of the account was started, or its questions were answered, too often today."""

    code = "recovery_too_often"
    title = "Recovery was tried too often today."


class RecoveryChallengeRequired(Forbidden):
    """The account has a second factor; ``methods`` names those that can be used here."""

    code = "recovery_challenge_required"
    title = "A second factor is required, too."
    members = {"methods": shapes.TEXTS, "new_account_offered": shapes.BOOLEAN}


class NoIndependentFactor(Conflict):
    """The only second factor uses the recovery's own channel, so it is no additional proof."""

    code = "no_independent_factor"
    title = "Use another recovery channel."
    members = {"new_account_offered": shapes.BOOLEAN}


class RecoveryNotDue(Conflict):
    """The delay is not over; ``effective_at`` says when it is."""

    code = "recovery_not_due"
    title = "This recovery does not take effect yet."
    members = {"effective_at": shapes.UNIX_SECONDS}


class QuestionsDisabled(Forbidden):
    """The organization has not turned security questions on."""

    code = "recovery_questions_disabled"
    title = "Your organization does not use security questions."


class OwnFactors(Conflict):
    """Admins can only reset the factors of others; one's own require a proof."""

    code = "own_factors"
    title = "Your own second factors cannot be reset this way."
