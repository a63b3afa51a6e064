"""Models of users, sessions and API keys. Others are imported from the modules that define them."""

from accounts.models.api_keys import ApiKey
from accounts.models.known_devices import KnownDevice
from accounts.models.mailbox_proofs import MailboxProof
from accounts.models.sessions import Session
from accounts.models.signup_links import SignupLink
from accounts.models.terminal_sign_ins import TerminalSignIn
from accounts.models.users import User

__all__ = [
    "ApiKey",
    "KnownDevice",
    "MailboxProof",
    "Session",
    "SignupLink",
    "TerminalSignIn",
    "User",
]
