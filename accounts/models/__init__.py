"""Who: users, their sessions, the audit trail, and the counters behind the limits."""

from accounts.models.audit import AuditEvent
from accounts.models.deliveries import Delivery
from accounts.models.invitations import Invitation
from accounts.models.mailbox_proofs import MailboxProof
from accounts.models.sessions import Session
from accounts.models.signup_links import SignupLink
from accounts.models.throttles import Throttle
from accounts.models.users import User
from accounts.oauth.models import Domain, GrantKind, Identity, OAuthGrant, OAuthTransaction

__all__ = [
    "AuditEvent",
    "Delivery",
    "Domain",
    "GrantKind",
    "Identity",
    "Invitation",
    "MailboxProof",
    "OAuthGrant",
    "OAuthTransaction",
    "Session",
    "SignupLink",
    "Throttle",
    "User",
]
