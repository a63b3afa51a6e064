"""The errors of accounts."""

from common.errors import (
    Conflict,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    TooManyRequests,
    Unavailable,
)


class InvalidCredentials(NotAuthenticated):
    """Unknown e-mail, wrong password, or a disabled or throttled account, which look the same."""

    code = "invalid_credentials"
    title = "The e-mail or the password is wrong."


class SessionRevoked(NotAuthenticated):
    """The session behind the token has ended."""

    code = "session_revoked"
    title = "The session has ended."


class TokenSuperseded(NotAuthenticated):
    """A newer pair has replaced the token, and its session goes on: use the pair that is stored."""

    code = "token_superseded"
    title = "The token was replaced by a newer one."


class ApiKeyInvalid(NotAuthenticated):
    """Mistyped, unknown or revoked, or its creator is no longer an admin."""

    code = "api_key_invalid"
    title = "The API key is not valid."


class ApiKeyExpired(NotAuthenticated):
    """The API key has expired; an admin can create a new one."""

    code = "api_key_expired"
    title = "The API key has expired."


class ApiKeyNotFound(NotFound):
    """The environment has no API key with this id."""

    code = "api_key_not_found"
    title = "There is no such API key."


class TooManyApiKeys(Conflict):
    """The organization has reached its limit of API keys."""

    code = "too_many_api_keys"
    title = "The organization has too many API keys."


class ApiKeysMadeTooOften(TooManyRequests):
    """The organization has created too many API keys today."""

    code = "api_keys_made_too_often"
    title = "Too many API keys were created today."


class DevTokenRefused(NotAuthenticated):
    """Development tokens do not work in production."""

    code = "dev_token_refused"
    title = "Development tokens are refused here."


class TerminalSignInGone(Gone):
    """Unknown, expired, denied, allowed or used; the response does not say which."""

    code = "terminal_sign_in_gone"
    title = "This sign-in is over. Start it again at the terminal."


class EmailTaken(Conflict):
    """An account with this e-mail exists."""

    code = "email_taken"
    title = "There is an account with this e-mail."


class TooManyAttempts(TooManyRequests):
    """Too many attempts from this address."""

    code = "too_many_attempts"
    title = "Too many attempts from this address."


class HashingBusy(Unavailable):
    """Too many passwords are being checked concurrently."""

    code = "busy"
    title = "Too many concurrent sign-ins."


class SignupLinkGone(Gone):
    """Unknown, expired or used; the response does not say which."""

    code = "signup_link_gone"
    title = "This link can no longer be used."


class SessionNotFound(NotFound):
    """The caller has no active session with this id."""

    code = "session_not_found"
    title = "There is no such session."


class EmailVerified(Conflict):
    """The address is verified already, and no change of address is pending."""

    code = "email_verified"
    title = "There is no address to verify."


class EmailCodeRejected(InvalidRequest):
    """The code is not the one that was mailed last; the attempt was counted."""

    code = "email_code_rejected"
    title = "The code is wrong."


class EmailCodeGone(Gone):
    """No code was mailed, it has expired or failed five times, or the account changed."""

    code = "email_code_gone"
    title = "This code can no longer be used."


class EmailChangeGone(Gone):
    """The change of address is complete, cancelled or expired; the response does not say which."""

    code = "email_change_gone"
    title = "There is no change of address to cancel."


class SwitchedTooOften(TooManyRequests):
    """This sign-in has switched its environment too often in this hour."""

    code = "switched_too_often"
    title = "The environment was switched too often."


class MailedTooOften(TooManyRequests):
    """A code was mailed a moment ago, or too often today."""

    code = "mailed_too_often"
    title = "Too many codes were mailed."
