"""What accounts refuse."""

from platform_site.lib.errors import (
    Conflict,
    NotAuthenticated,
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


class DevTokenRefused(NotAuthenticated):
    """Development tokens do not work in production."""

    code = "dev_token_refused"
    title = "Development tokens are refused here."


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
