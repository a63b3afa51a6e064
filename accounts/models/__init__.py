"""Models of users, sessions, API keys, the audit trail, and the counters of rate limits."""

from accounts.models.api_keys import ApiKey
from accounts.models.audit import AuditEvent
from accounts.models.deliveries import Delivery
from accounts.models.exports import OrganizationExport
from accounts.models.invitations import Invitation
from accounts.models.known_devices import KnownDevice
from accounts.models.mailbox_proofs import MailboxProof
from accounts.models.sessions import Session
from accounts.models.signup_links import SignupLink
from accounts.models.terminal_sign_ins import TerminalSignIn
from accounts.models.throttles import Throttle
from accounts.models.users import User
from accounts.models.webhooks import WebhookDelivery, WebhookEndpoint
from accounts.oauth.models import Domain, GrantKind, Identity, OAuthGrant, OAuthTransaction

__all__ = [
    "ApiKey",
    "AuditEvent",
    "Delivery",
    "Domain",
    "GrantKind",
    "Identity",
    "Invitation",
    "KnownDevice",
    "MailboxProof",
    "OAuthGrant",
    "OAuthTransaction",
    "OrganizationExport",
    "Session",
    "SignupLink",
    "TerminalSignIn",
    "Throttle",
    "User",
    "WebhookDelivery",
    "WebhookEndpoint",
]
