"""What external sign-in refuses; each code is also what a browser is sent back with (``error``)."""

from platform_site.lib.errors import (
    Conflict,
    EngineError,
    Forbidden,
    Gone,
    InvalidRequest,
    NotAuthenticated,
    NotFound,
    Unavailable,
)
from platform_site.lib.openapi import shapes


class ProviderNotConfigured(NotFound):
    """This installation does not sign in with this provider."""

    code = "provider_not_configured"
    title = "There is no such sign-in here."


class RedirectNotAllowed(InvalidRequest):
    """``redirect_to`` is not one of the allowed URLs, character for character."""

    code = "redirect_not_allowed"
    title = "Nobody is sent back to that address."


class StateInvalid(InvalidRequest):
    """The return belongs to no sign-in begun in this browser."""

    code = "oauth_state_invalid"
    title = "This sign-in was not begun in this browser."


class StateUsed(Gone):
    """The sign-in at the provider has returned already, or took more than ten minutes."""

    code = "oauth_state_used"
    title = "This sign-in is over. Begin again."


class AccessDenied(Forbidden):
    """The person did not agree at the provider."""

    code = "access_denied"
    title = "You did not agree to sign in there."


class ProviderError(EngineError):
    """The provider refused or answered nonsense."""

    code = "provider_error"
    title = "The provider could not sign you in."


class ProviderUnavailable(Unavailable):
    """The provider does not answer, or not in time."""

    code = "provider_unavailable"
    title = "The provider does not answer for the moment."


class IdentityInvalid(EngineError):
    """The provider's proof of identity does not hold: signature, issuer, audience, nonce, age."""

    code = "identity_invalid"
    title = "The provider's answer could not be trusted."


class EmailMissing(Forbidden):
    """A new account takes an e-mail address, and the provider gave none."""

    code = "email_missing"
    title = "The provider gave no e-mail address."


class EmailUnverified(Forbidden):
    """A new account takes an e-mail address that the provider has verified."""

    code = "email_unverified"
    title = "The provider has not verified your e-mail address."


class DomainNotAllowed(Forbidden):
    """Only accounts of certain domains may sign in here."""

    code = "domain_not_allowed"
    title = "Accounts of this domain may not sign in here."


class CodeGone(Gone):
    """The code or link token is unknown, expired or used, or the verifier is another one's."""

    code = "oauth_code_gone"
    title = "This code can no longer be used."


class IdentityRefused(NotAuthenticated):
    """The account that the identity signs in to is disabled."""

    code = "identity_refused"
    title = "You cannot sign in with this account."


class LinkRequired(Conflict):
    """An account has this e-mail: sign in to it, then link with ``link_token``."""

    code = "link_required"
    title = "There is an account with this e-mail."
    members = {
        "provider": shapes.TEXT,
        "link_token": shapes.TEXT,
        "link_expires_at": shapes.UNIX_SECONDS,
    }


class LinkForeign(Forbidden):
    """A link is finished only by the session that began it, or the user it is meant for."""

    code = "link_foreign_session"
    title = "Another session has to finish this."


class IdentityTaken(Conflict):
    """The account at the provider signs somebody else in."""

    code = "identity_taken"
    title = "This account is linked to another user."


class LastLoginMethod(Conflict):
    """Without it there would be no way to sign in."""

    code = "last_login_method"
    title = "This is your only way to sign in."


class DomainTaken(Conflict):
    """The organization claims the domain already, or another one has proven it."""

    code = "domain_taken"
    title = "The domain is taken."


class TooManyDomains(Conflict):
    """The organization claims as many domains as it may."""

    code = "too_many_domains"
    title = "Too many domains are claimed."


class DomainUnproven(Conflict):
    """The TXT record is not there, or holds something else."""

    code = "domain_unproven"
    title = "The record was not found."
    members = {"record": shapes.DNS_RECORD}


class DnsUnavailable(Unavailable):
    """The domain's name servers do not answer."""

    code = "dns_unavailable"
    title = "The domain's name servers do not answer for the moment."
    retry_after_s = 60
