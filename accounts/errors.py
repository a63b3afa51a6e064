"""What accounts refuse."""

from platform_site.lib.errors import (
    Conflict,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    TooManyRequests,
    Unavailable,
)


class InvalidCredentials(NotAuthenticated):
    """Unknown e-mail, wrong password, disabled user and slowed account: all the same."""

    code = "invalid_credentials"
    title = "The e-mail or the password is wrong."


class SessionRevoked(NotAuthenticated):
    """The session behind the token has ended."""

    code = "session_revoked"
    title = "The session has ended."


class ApiKeyInvalid(NotAuthenticated):
    """Mistyped, unknown, revoked, or of a maker who is no admin any more: all the same."""

    code = "api_key_invalid"
    title = "The API key is not valid."


class ApiKeyExpired(NotAuthenticated):
    """The API key was valid once; an admin makes another."""

    code = "api_key_expired"
    title = "The API key has expired."


class ApiKeyNotFound(NotFound):
    """The environment has no API key with this id."""

    code = "api_key_not_found"
    title = "There is no such API key."


class TooManyApiKeys(Conflict):
    """The organization has as many API keys as it may."""

    code = "too_many_api_keys"
    title = "The organization has too many API keys."


class ApiKeysMadeTooOften(TooManyRequests):
    """The organization has made too many API keys today."""

    code = "api_keys_made_too_often"
    title = "Too many API keys were made today."


class WebhookNotFound(NotFound):
    """The organization has no webhook with this id."""

    code = "webhook_not_found"
    title = "There is no such webhook."


class WebhookDeliveryNotFound(NotFound):
    """The webhook has no delivery with this id, or it is older than 30 days."""

    code = "webhook_delivery_not_found"
    title = "There is no such delivery."


class WebhookIsOff(Conflict):
    """The webhook is switched off, so nothing is sent to it."""

    code = "webhook_is_off"
    title = "The webhook is switched off."


class TooManyWebhooks(Conflict):
    """The organization has as many webhooks as it may."""

    code = "too_many_webhooks"
    title = "The organization has too many webhooks."


class WebhookSentTooOften(TooManyRequests):
    """Test events and repeated deliveries have a limit by the hour."""

    code = "webhook_sent_too_often"
    title = "Too many deliveries were requested this hour."


class DevTokenRefused(NotAuthenticated):
    """Development tokens do not work in production."""

    code = "dev_token_refused"
    title = "Development tokens are refused here."


class TerminalSignInGone(Gone):
    """Unknown, expired, denied, allowed or used: all the same."""

    code = "terminal_sign_in_gone"
    title = "This sign-in is over. Start it again at the terminal."


class EmailTaken(Conflict):
    """An account with this e-mail exists."""

    code = "email_taken"
    title = "There is an account with this e-mail."


class TooManyAttempts(TooManyRequests):
    """Too many tries from this address."""

    code = "too_many_attempts"
    title = "Too many attempts from this address."


class HashingBusy(Unavailable):
    """Too many passwords are being checked at once."""

    code = "busy"
    title = "Too many sign-ins at once."


class MemberNotFound(NotFound):
    """The organization has no member with this id."""

    code = "member_not_found"
    title = "There is no such member."


class LastAdmin(Conflict):
    """The organization's last active admin can be neither removed, demoted nor disabled."""

    code = "last_admin"
    title = "An organization needs an admin."


class InvitationNotFound(NotFound):
    """The organization has no open invitation with this id."""

    code = "invitation_not_found"
    title = "There is no such invitation."


class SignupLinkGone(Gone):
    """Unknown, expired or used: all the same."""

    code = "signup_link_gone"
    title = "This link can no longer be used."


class InvitationGone(Gone):
    """Unknown, expired, accepted, revoked or replaced: all the same."""

    code = "invitation_gone"
    title = "This invitation can no longer be accepted."


class InvitingTooOften(TooManyRequests):
    """The organization has invited too many addresses today, or one address too often."""

    code = "inviting_too_often"
    title = "Too many invitations today."


class TooManyInvitations(Conflict):
    """The organization has too many open invitations."""

    code = "too_many_invitations"
    title = "Too many invitations are open."


class SessionNotFound(NotFound):
    """No live session of the caller's has this id."""

    code = "session_not_found"
    title = "There is no such session."


class EmailVerified(Conflict):
    """The address is proven already, and no other one waits to be."""

    code = "email_verified"
    title = "There is no address to verify."


class EmailCodeRejected(InvalidRequest):
    """The code is not the one that was mailed last; it was counted."""

    code = "email_code_rejected"
    title = "The code is wrong."


class EmailCodeGone(Gone):
    """No code was mailed, or it has expired, or was missed five times, or the account changed."""

    code = "email_code_gone"
    title = "This code can no longer be used."


class EmailChangeGone(Gone):
    """The change of address is through, was cancelled, or has expired: all the same."""

    code = "email_change_gone"
    title = "There is no change of address to cancel."


class MailedTooOften(TooManyRequests):
    """A code was mailed a moment ago, or too often today."""

    code = "mailed_too_often"
    title = "Too many codes were mailed."
