"""Sign-ins that a program at a terminal waits for and a browser allows."""

from django.db import models

from accounts.models.users import User


class TerminalSignIn(models.Model):
    """A program that waits for somebody to allow its sign-in in a browser.

    digest: of the request's id, which opens its page. code_challenge: RFC 7636, S256: a code
    has no effect without the program's verifier.
    host, address, agent: who asks, as the page shows it; the host name is the program's own claim.
    port: of the program's listener on 127.0.0.1; null if its user carries the code over.
    environment: the wanted one, '' for the one used last; the slug once it is allowed.
    user, session_id: who has allowed it, and with which session; code_digest: of the one-time code
    that this led to.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    code_challenge = models.CharField(max_length=43)
    host = models.CharField(max_length=64)
    address = models.CharField(max_length=45)
    agent = models.CharField(max_length=300)
    port = models.PositiveIntegerField(null=True)
    environment = models.CharField(max_length=100, blank=True)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    session_id = models.UUIDField(null=True)
    code_digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001 - unique
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        """Return the host that asks."""
        return self.host
