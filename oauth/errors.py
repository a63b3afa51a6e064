"""Errors of external sign-in; their codes are also sent back with the browser as ``error``."""

from common.errors import (
    Conflict,
    EngineError,
    Forbidden,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    Unavailable,
)
from common.openapi import shapes


class ProviderNotConfigured(NotFound):
    """This installation is not configured for the provider."""

    code = "provider_not_configured"
    title = "This sign-in provider is not available."


class RedirectNotAllowed(InvalidRequest):
    """``redirect_to`` does not exactly equal an allowed URL."""

    code = "redirect_not_allowed"
    title = "This redirect address is not allowed."


class StateInvalid(InvalidRequest):
    """The callback belongs to no sign-in that this browser started."""

    code = "oauth_state_invalid"
    title = "This sign-in was not started in this browser."


class StateUsed(Gone):
    """The transaction was called back already, or took more than ten minutes."""

    code = "oauth_state_used"
    title = "This sign-in has expired. Start again."


class AccessDenied(Forbidden):
    """The user did not consent at the provider."""

    code = "access_denied"
    title = "You cancelled the sign-in."


class ProviderError(EngineError):
    """The provider refused, or sent an invalid response."""

    code = "provider_error"
    title = "The provider could not sign you in."


class ProviderUnavailable(Unavailable):
    """The provider does not respond, or not in time."""

    code = "provider_unavailable"
    title = "The provider is not responding at the moment."


class IdentityInvalid(EngineError):
    """The ID token is invalid: signature, issuer, audience, nonce or age."""

    code = "identity_invalid"
    title = "The provider's response could not be verified."


class EmailMissing(Forbidden):
    """A new account needs an e-mail address that mail can be sent to."""

    code = "email_missing"
    title = "The provider did not share an e-mail address that mail can be sent to."


class EmailUnverified(Forbidden):
    """A new account needs an e-mail address that the provider has verified."""

    code = "email_unverified"
    title = "The provider has not verified your e-mail address."


class DomainNotAllowed(Forbidden):
    """Only accounts of the configured domains may sign in."""

    code = "domain_not_allowed"
    title = "Accounts of this domain may not sign in."


class CodeGone(Gone):
    """The code or link token is unknown, expired or used, or the verifier does not match."""

    code = "oauth_code_gone"
    title = "This code is no longer valid."


class IdentityRefused(NotAuthenticated):
    """The account that the identity signs in to is disabled."""

    code = "identity_refused"
    title = "You cannot sign in with this account."


class LinkRequired(Conflict):
    """An account has this e-mail address: sign in to it, then link with ``link_token``."""

    code = "link_required"
    title = "There is already an account with this e-mail address."
    members = {
        "provider": shapes.TEXT,
        "link_token": shapes.TEXT,
        "link_expires_at": shapes.UNIX_SECONDS,
    }


class InvitationOpen(Conflict):
    """The address is invited: exchange ``join_code`` with the ``invitation_id`` to accept, or null.

    ``join_code`` works like the code of the callback, with the same verifier.
    """

    code = "invitation_open"
    title = "There is an open invitation for this address."
    members = {
        "join_code": shapes.TEXT,
        "join_expires_at": shapes.UNIX_SECONDS,
        "invitations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": shapes.UUID,
                    "organization": shapes.TEXT,
                    "roles": {"type": "array", "items": shapes.TEXT},
                    "invited_by": {"type": ["string", "null"]},
                },
                "required": ["id", "organization", "roles", "invited_by"],
            },
        },
    }


class LinkForeign(Forbidden):
    """Only the session that started a link, or the user of a link token, can complete it."""

    code = "link_foreign_session"
    title = "Another session has to complete this."


class IdentityTaken(Conflict):
    """The account at the provider is linked to another user."""

    code = "identity_taken"
    title = "This account is linked to another user."


class LastLoginMethod(Conflict):
    """It is the user's only sign-in method."""

    code = "last_login_method"
    title = "This is your only sign-in method."


class DomainTaken(Conflict):
    """The organization has claimed the domain already, or another one has verified it."""

    code = "domain_taken"
    title = "This domain is already in use."


class TooManyDomains(Conflict):
    """The organization has claimed the maximum number of domains."""

    code = "too_many_domains"
    title = "You have claimed too many domains."


class DomainUnproven(Conflict):
    """The TXT record is missing or has another value."""

    code = "domain_unproven"
    title = "The DNS record was not found."
    members = {"record": shapes.DNS_RECORD}
