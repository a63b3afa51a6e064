"""Rows about requests: interactive transactions, history, running requests, saved queries."""

from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower

from common.ids import uuid7
from common.scoping import TenantModel

# In a kept text: instead of a literal or comment that may be a secret, and instead of the whole.
REMOVED: Final = "'[removed]'"
ALL_REMOVED: Final = "[removed: the text may contain a secret]"


class InteractiveTransaction(TenantModel):
    """A transaction that stays open over several requests, and the process that owns it.

    caller_role: the caller's role.
    role: the role of the connection; reader for a read-only transaction.
    owner: ``host:port`` of the process that owns it.
    xid: its id in PostgreSQL, set when the commit begins.
    active_until: when it no longer counts as open.
    """

    class State(models.TextChoices):
        """Only one caller can change the state from OPEN to another one."""

        OPEN = "open"
        COMMITTING = "committing"
        COMMITTED = "committed"
        ROLLED_BACK = "rolled_back"

    id = models.UUIDField(primary_key=True)
    organization = models.ForeignKey("environments.Organization", on_delete=models.CASCADE)
    environment = models.ForeignKey("environments.Environment", on_delete=models.CASCADE)
    user_id = models.UUIDField(null=True)
    session_id = models.UUIDField(null=True)
    caller_role = models.CharField(max_length=16)
    role = models.CharField(max_length=16)
    owner = models.CharField(max_length=300)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OPEN)
    xid = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    active_until = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta(TenantModel.Meta):
        """An index of open transactions, which are counted by organization."""

        indexes: ClassVar[list[Any]] = [
            models.Index(
                "organization",
                condition=models.Q(state="open"),
                name="sqlgateway_open_transactions",
            )
        ]

    def __str__(self) -> str:
        """Return the id."""
        return str(self.pk)

    @property
    def outcome(self) -> str:
        """The outcome, as in an error's ``outcome``."""
        is_known = self.state in {self.State.COMMITTED, self.State.ROLLED_BACK}
        return str(self.state) if is_known else "unknown"


class SqlRecord(TenantModel):
    """One SQL request in the history (records/history.py writes the rows, without Django).

    text: without parameters' values, truncated, secrets removed.
    outcome: ``success``, or the error's code.
    row_count: of the last statement; None after an error.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    environment = models.ForeignKey(
        "environments.Environment", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user_id = models.UUIDField(null=True)
    actor = models.CharField(max_length=254)
    role = models.CharField(max_length=16)
    request_id = models.CharField(max_length=64)
    at = models.DateTimeField()
    text = models.TextField()
    statements = models.PositiveIntegerField()
    elapsed_ms = models.FloatField()
    outcome = models.CharField(max_length=64)
    sqlstate = models.CharField(max_length=5, blank=True)
    row_count = models.BigIntegerField(null=True)

    class Meta(TenantModel.Meta):
        """Indexes: rows are read by environment, newest first, and trimmed by organization."""

        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["environment", "id"], name="sqlgateway_sqlrecord_newest"),
            models.Index(fields=["organization", "id"], name="sqlgateway_sqlrecord_of_org"),
        ]

    def __str__(self) -> str:
        """Return the row's id: the text belongs to the tenant."""
        return f"SQL request {self.pk}"

    @property
    def is_cut(self) -> bool:
        """True if the text may not be all that ran: it was longer, or secrets were removed."""
        is_long = len(self.text) >= settings.SQL.history_text_chars
        return is_long or self.text == ALL_REMOVED or REMOVED in self.text


class RunningSql(TenantModel):
    """One SQL request that has run for a while (records/running_requests.py).

    text: as in SqlRecord.
    expires_at: a process that has not renewed the row by then has died.
    is_cancelled: a request to its process to cancel it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+"
    )
    environment = models.ForeignKey(
        "environments.Environment", on_delete=models.CASCADE, related_name="+"
    )
    user_id = models.UUIDField(null=True)
    actor = models.CharField(max_length=254)
    role = models.CharField(max_length=16)
    request_id = models.CharField(max_length=64)
    text = models.TextField()
    at = models.DateTimeField()
    expires_at = models.DateTimeField()
    is_cancelled = models.BooleanField(default=False)

    def __str__(self) -> str:
        """Return the row's id: the text belongs to the tenant."""
        return f"running SQL request {self.pk}"


class SavedQuery(TenantModel):
    """A text that the members of an organization share (records/saved_queries.py).

    version: the number of the last change, so that a change of an outdated text is refused.
    updated_by: as in the audit trail.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organization = models.ForeignKey(
        "environments.Organization", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=100)
    text = models.TextField()
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=254)

    class Meta(TenantModel.Meta):
        """Names are unique in an organization, ignoring case."""

        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint("organization", Lower("name"), name="sqlgateway_saved_name")
        ]

    def __str__(self) -> str:
        """Return the row's id: the name belongs to the tenant."""
        return f"saved query {self.pk}"
