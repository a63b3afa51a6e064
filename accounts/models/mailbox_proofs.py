"""Pending verifications of mailboxes."""

from datetime import datetime
from typing import Final

from django.db import models

from accounts.models.users import User
from common.scoping import TenantModel
from environments.models import Organization

PROOF_TRIES: Final = 5


class MailboxProof(TenantModel):
    """The address a user has to verify: the account's own, or a new one.

    code: keyed digest of the mailed code. cancel: digest of the token in the notice to the present
    address; '' without one. fingerprint: of password and address when the change was requested, so
    that a change of either invalidates it; '' for the account's own address.
    sent_at: when a code was last mailed.
    """

    user = models.OneToOneField(
        User, primary_key=True, on_delete=models.CASCADE, related_name="mailbox_proof"
    )
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    email = models.EmailField(max_length=254)
    code = models.CharField(max_length=64)
    cancel = models.CharField(max_length=64, blank=True, db_index=True)
    fingerprint = models.CharField(max_length=64, blank=True)
    attempts_left = models.PositiveSmallIntegerField(default=PROOF_TRIES)
    sent_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the attempts that are left."""
        return f"{self.attempts_left} tries left"

    def is_open(self, now: datetime) -> bool:
        """True if its code can still be entered."""
        return self.attempts_left > 0 and now < self.expires_at
