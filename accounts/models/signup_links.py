"""Sign-ups whose mailbox is not verified yet."""

from django.db import models


class SignupLink(models.Model):
    """A mailed link to sign up with; it works once.

    digest: of the token, which only the mail contains.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    email = models.EmailField(max_length=254)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return when it expires; lists do not show the address."""
        return f"until {self.expires_at:%Y-%m-%d %H:%M}"
