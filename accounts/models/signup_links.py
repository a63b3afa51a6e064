"""Sign-ups that wait for their mailbox."""

from django.db import models


class SignupLink(models.Model):
    """A mailed link with which the owner of a mailbox signs up; it works once.

    digest: of the token that the mail alone carries.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    email = models.EmailField(max_length=254)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return when it expires: the address is not for a list."""
        return f"until {self.expires_at:%Y-%m-%d %H:%M}"
