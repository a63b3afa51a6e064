"""Sign-ins of programs in a terminal, allowed in a browser."""

from django.db import models

from accounts.models.users import User


class TerminalSignIn(models.Model):
    """A program that waits for its user to allow the sign-in in a browser.

    digest: of the request's id, which opens its page. code_challenge: RFC 7636, S256: a code
    has no effect without the program's verifier.
    host, address, agent: the requesting program, as the page shows it; the program chooses the host
    name.
    port: of the program's listener on 127.0.0.1; null if its user copies the code.
    environment: the requested one, '' for the last used one; the slug once it is allowed.
    user, session_id: the user who has allowed it, and the session; code_digest: of the one-time
    code that was issued.
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
        """Return the requesting host."""
        return self.host
