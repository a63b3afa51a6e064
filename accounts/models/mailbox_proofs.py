"""Mailboxes that are to be proven."""

from datetime import datetime
from typing import Final

from django.db import models

from accounts.models.users import User
from environments.models import Organization
from platform_site.lib.scoping import TenantModel

PROOF_TRIES: Final = 5


class MailboxProof(TenantModel):
    """The address a user is about to prove: the account's own, or the one to change to.

    code: keyed digest of what was mailed there. cancel: of what a notice to the former address
    carries, '' where there is none. fingerprint: of password and address as they were when a
    change began, so that a change of either ends it; '' for the account's own address.
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
        """Return the tries that are left."""
        return f"{self.attempts_left} tries left"

    def is_open(self, now: datetime) -> bool:
        """True if its code can still be tried."""
        return self.attempts_left > 0 and now < self.expires_at
